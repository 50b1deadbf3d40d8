"""The live view of a run on a terminal: steps, units, widths and elapsed time, redrawn in place.

Implements `ports.observer.Observer`. It draws a few times a second from the driver's own event
loop, so it never sees a half-changed state, and what it draws is bounded by the screen.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TextIO, cast

from flowstone.cli.render.lines import call_soon, summary
from flowstone.cli.render.terminal import Terminal, clipped, fitted, one_line, say
from flowstone.views.progress import Word, elapsed_text, step_line
from flowstone.views.text import short_unit, spell_count

if TYPE_CHECKING:
    from rich.console import Console, Group

    from flowstone.run.events import Event
    from flowstone.run.state import State, StepState

REDRAW_S = 0.2
GLYPHS = {
    "succeeded": ("✓", "green"),
    "failed": ("✗", "red"),
    "skipped": ("-", "dim"),
    "upstream_failed": ("!", "yellow"),
    "held": ("⚠", "yellow"),
    "cancelled": ("✗", "dim"),
    "pending": ("·", "dim"),
}
NARROW = 60
"""On a screen of fewer columns a step's units and time are left out."""
SPINNER = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"


class LiveView:
    """Draws a run until `close`, which leaves the summary on the screen."""

    def __init__(self, stream: TextIO, word: Word, terminal: Terminal) -> None:
        from rich.console import Console
        from rich.live import Live

        self._stream = stream
        self._word = word
        self._terminal = terminal
        self._console = Console(
            file=cast(TextIO, _Fitting(stream)),
            force_terminal=True,
            color_system="standard" if terminal.colour else None,
            highlight=False,
        )
        self._live = Live(console=self._console, auto_refresh=False, transient=True)
        self._state: State | None = None
        self._below: dict[str, State] = {}
        self._above: list[str] = []
        self._due: object = None
        self._closed = False

    def recorded(self, state: State, events: Sequence[Event]) -> None:
        if self._state is None:
            self._live.start()
        self._state = state
        self._soon()

    def nested(self, path: str, state: State, events: Sequence[Event]) -> None:
        """The steps of a nested run stand below the step that waits for it, as long as that is open."""
        self._below[path] = state
        self._soon()

    def line(self, step: str, unit: str, text: str) -> None:
        self._above.append(f"{one_line(short_unit(unit))} │ {one_line(text)}")
        self._soon()

    def warned(self, text: str) -> None:
        self._above.append(f"warning: {one_line(short_unit(text))}")
        self._soon()

    def close(self) -> None:
        """Take the view away; print what still waits and the summary. Closing twice does nothing."""
        if self._closed:
            return
        self._closed = True
        self._live.stop()
        lines = list(self._above)
        if self._state is not None:
            lines += summary(self._state, self._word, self._terminal)
        say("".join(f"{line}\n" for line in lines), self._stream)

    def _soon(self) -> None:
        if self._due is None and not self._closed:
            self._due = call_soon(REDRAW_S, self._draw)

    def _draw(self) -> None:
        self._due = None
        try:
            self._redraw()
        except OSError:  # the terminal is gone; the run is not
            self._closed = True

    def _redraw(self) -> None:
        if self._closed:
            return
        if self._above:
            self._console.print("\n".join(self._above), markup=False, emoji=False, soft_wrap=True)
            self._above.clear()
        if self._state is not None:
            drawn = picture(self._state, self._word, self._console, _now_ms(), self._below)
            self._live.update(drawn, refresh=True)
            if self._state.active and _in_loop():
                self._soon()


class _Fitting:
    """A stream that spells what it cannot show, for a library that writes to it."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        return self._stream.write(fitted(text, self._stream))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


def picture(
    state: State, word: Word, console: Console, now: int, below: Mapping[str, State] = MappingProxyType({})
) -> Group:
    """What stands on the screen, a row each: the steps that fit, the running ones first, and the run.

    `below` are the nested runs by the way to them; their steps stand below the open step that they belong to.
    """
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, show_header=False, padding=(0, 1), expand=False)
    wide = console.width >= NARROW
    for _ in range(5 if wide else 3):
        table.add_column(no_wrap=True, overflow="ellipsis")
    rows = list(_rows(state, below, ""))
    for name, step in visible(rows, max(3, console.size.height - 4)):
        line = step_line(step, word, now)
        glyph, style = GLYPHS.get(step.status, (SPINNER[now // 100 % len(SPINNER)], "cyan"))
        took = "" if line.took_ms is None else elapsed_text(line.took_ms)
        table.add_row(
            Text(glyph, style=style),
            Text(clipped(one_line(name), max(4, console.width - (40 if wide else 16)))),
            Text(line.word, style=style),
            *([] if not wide else [Text(line.units, style="dim"), Text(took, style="dim")]),
        )
    ended = len(state.order) - sum(1 for step in state.order if step.status in ("pending", "open"))
    total = elapsed_text(0 if state.started_at is None else now - state.started_at)
    running = spell_count(state.running + sum(nested.running for nested in below.values() if nested.active), "unit")
    run = f"   {ended}/{spell_count(len(state.order), 'step')}, {running} running, {total}"
    return Group(table, Text(run, style="bold", no_wrap=True, overflow="ellipsis"))


Row = tuple[str, "StepState"]
"""A step with the way to it."""


def _rows(state: State, below: Mapping[str, State], front: str) -> Iterator[Row]:
    """Steps in file order, each open one followed by those of the run that it nests."""
    for step in state.order:
        path = f"{front}{step.id}"
        yield path, step
        if step.status == "open" and path in below:
            yield from _rows(below[path], below, f"{path}/")


def visible(rows: Sequence[Row], room: int) -> list[Row]:
    """At most `room` rows in their order: all open ones, then those nearest to them."""
    if len(rows) <= room:
        return list(rows)
    chosen = {place for place, (_, step) in enumerate(rows) if step.status == "open"}
    chosen = set(sorted(chosen)[:room])
    anchor = min(chosen) if chosen else _first_pending(rows)
    for place in sorted(range(len(rows)), key=lambda place: abs(place - anchor)):
        if len(chosen) == room:
            break
        chosen.add(place)
    return [rows[place] for place in sorted(chosen)]


def _first_pending(rows: Sequence[Row]) -> int:
    return next((place for place, (_, step) in enumerate(rows) if step.status == "pending"), len(rows) - 1)


def _now_ms() -> int:
    return int(time.time() * 1000)


def _in_loop() -> bool:
    import asyncio

    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True
