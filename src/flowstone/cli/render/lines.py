"""Progress as whole lines, for pipes, CI and the documented output of orun.

Lines are put together in memory and written in one piece, so that lines of units that run side by
side never mix. Both classes implement `ports.observer.Observer`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, TextIO

from flowstone.cli.render.terminal import BOLD, DIM, GREEN, RED, YELLOW, Terminal, neutral, one_line, say
from flowstone.errors import FlowstoneError
from flowstone.run.events import RunInterrupted
from flowstone.values import clip
from flowstone.views.progress import (
    StepLine,
    Word,
    elapsed_text,
    orun_progress,
    plain_progress,
    run_took_ms,
    shown,
    step_line,
)
from flowstone.views.text import short_unit
from flowstone.views.usage import run_usage, usage_object, usage_text

if TYPE_CHECKING:
    from flowstone.run.events import Event
    from flowstone.run.state import State

LAG_S = 0.05
"""How long a line may wait for others before it is written."""

LINE_CHARS = 2_000
"""Characters of a printed line that plain progress shows."""

_UNIT = re.compile(r'^unit "([^":]+):solo"')
"""A unit as warnings name it; orun's files know steps only."""

COLOURS = {"succeeded": GREEN, "failed": RED, "held": YELLOW, "upstream_failed": YELLOW}


class LineWriter:
    """Collects lines and writes them together, soon. A stream that fails is left alone."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._pending: list[str] = []
        self._due: object = None
        self._broken = False

    def put(self, lines: Iterable[str]) -> None:
        """Lines that may wait for a moment; a line feed inside one becomes a blank."""
        for line in lines:
            self.add(line.replace("\n", " "))

    def add(self, line: str) -> None:
        """One line without line feeds, or several of them joined."""
        self._pending.append(line)
        if self._due is None:
            self._due = call_soon(LAG_S, self.flush)

    def add_all(self, before: str, lines: Sequence[str]) -> None:
        """Lines without line feeds, each with the same text in front."""
        if lines:
            self.add(before + f"\n{before}".join(lines))

    def flush(self) -> None:
        joined = "\n".join(self._pending)
        text = f"{_neutral_lines(joined)}\n" if self._pending else ""
        self._pending.clear()
        self._due = None
        if text and not self._broken:
            try:
                say(text, self._stream)
            except FlowstoneError:
                self._broken = True


class PlainLines:
    """Progress of any run: a line when a step begins and ends, when a unit fails, for each output line.

    A wide fan-out also tells its count, every few seconds at most. `close` writes what still waits.
    """

    def __init__(self, stream: TextIO, word: Word) -> None:
        self._writer = LineWriter(stream)
        self._word = word
        self._told: dict[str, int] = {}
        self._told_below: dict[str, dict[str, int]] = {}

    def recorded(self, state: State, events: Sequence[Event]) -> None:
        self._writer.put(line for event in events for line in plain_progress(state, event, self._word, self._told))

    def nested(self, path: str, state: State, events: Sequence[Event]) -> None:
        told = self._told_below.setdefault(path, {})
        for event in events:
            if not isinstance(event, RunInterrupted):
                self._writer.put(f"{path}/{line}" for line in plain_progress(state, event, self._word, told))

    def line(self, step: str, unit: str, text: str) -> None:
        self._writer.add(f"{short_unit(unit)} │ {clip(text, LINE_CHARS)}")

    def lines(self, step: str, unit: str, texts: Sequence[str]) -> None:
        self._writer.add_all(f"{short_unit(unit)} │ ", [clip(text, LINE_CHARS) for text in texts])

    def warned(self, text: str) -> None:
        self._writer.put([f"warning: {short_unit(text)}"])

    def close(self) -> None:
        self._writer.flush()


class OrunLines:
    """The progress that orun documents, with its own words for statuses."""

    def __init__(self, stream: TextIO, word: Word) -> None:
        self._writer = LineWriter(stream)
        self._word = word

    def recorded(self, state: State, events: Sequence[Event]) -> None:
        self._writer.put(line for event in events for line in orun_progress(event, self._word))

    def nested(self, path: str, state: State, events: Sequence[Event]) -> None:
        self._writer.put(line for event in events for line in orun_progress(event, self._word, f"{path}/"))

    def line(self, step: str, unit: str, text: str) -> None:
        self._writer.add(f"    {step} │ {text}")

    def lines(self, step: str, unit: str, texts: Sequence[str]) -> None:
        self._writer.add_all(f"    {step} │ ", texts)

    def warned(self, text: str) -> None:
        self._writer.put(["  ! " + _UNIT.sub(r"step \1", text)])

    def close(self) -> None:
        self._writer.flush()


def summary(state: State, word: Word, terminal: Terminal) -> list[str]:
    """The account at the end of a run: a line for each step, then the run and what it gave."""
    width = max((len(step.id) for step in state.order), default=0)
    steps = [step_line(step, word) for step in state.order]
    longest = max((len(line.word) for line in steps), default=0)
    lines = [text for line in steps for text in _step_lines(line, terminal, width, longest)]
    status = terminal.paint(word(state.status.value), BOLD)
    used = usage_text(usage_object(run_usage(state)).get("usage"))
    took = elapsed_text(run_took_ms(state))
    lines.append(f"run {one_line(state.run_id)}: {status} in {took}{f', {used}' if used else ''}")
    if isinstance(state.outputs, dict):
        lines += [one_line(f"  {name} = {shown(value)}") for name, value in state.outputs.items()]
    return lines


def call_soon(seconds: float, call: Callable[[], None]) -> object:
    """Have the running event loop call back; without one the call is made at once and this is None."""
    import asyncio

    try:
        return asyncio.get_running_loop().call_later(seconds, call)
    except RuntimeError:
        call()
        return None


def _step_lines(line: StepLine, terminal: Terminal, width: int, longest: int) -> list[str]:
    took = "" if line.took_ms is None else elapsed_text(line.took_ms)
    word = terminal.paint(f"{line.word:<{longest}}", COLOURS.get(line.status, DIM))
    first = f"  {one_line(line.step):<{width}}  {word}  {took:>6}  {line.units}".rstrip()
    return [first] + ([f"      {terminal.paint('✕', RED)} {one_line(line.error)}"] if line.error else [])


def _neutral_lines(text: str) -> str:
    """Neutral text of many lines; that all of it is harmless is found out in one go."""
    if text.replace("\n", "").replace("\t", "").isprintable():
        return text
    return "\n".join(neutral(line) for line in text.split("\n"))
