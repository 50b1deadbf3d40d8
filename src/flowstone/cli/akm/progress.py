"""What `akm workflow run` tells on stderr while a run goes on; stdout stays free for the envelope.

On a terminal it is the live view, with `--verbose` whole lines, otherwise warnings only.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

from flowstone.cli.render.formats import Output
from flowstone.cli.render.terminal import terminal_of

if TYPE_CHECKING:
    from flowstone.run.events import Event
    from flowstone.run.state import State
    from flowstone.views.words import Word


class Progress(Protocol):
    """An observer (ports.observer) that is closed when the drive has ended."""

    def recorded(self, state: State, events: Sequence[Event]) -> None: ...
    def line(self, step: str, unit: str, text: str) -> None: ...
    def warned(self, text: str) -> None: ...
    def close(self) -> None: ...


def progress_of(output: Output, word: Word) -> tuple[Progress, bool]:
    """The progress that the surroundings and the options ask for, and whether it shows units' lines."""
    if output.quiet:
        return Warnings(output), False
    terminal = terminal_of(sys.stderr)
    if terminal.live:
        from flowstone.cli.render.live import LiveView

        return LiveView(sys.stderr, word, terminal), True
    if output.verbose:
        from flowstone.cli.render.lines import PlainLines

        return PlainLines(sys.stderr, word), True
    return Warnings(output), False


class Warnings:
    """Progress of pipes: nothing but warnings, and with `--quiet` not even those."""

    def __init__(self, output: Output) -> None:
        self._output = output

    def recorded(self, state: State, events: Sequence[Event]) -> None:
        return None

    def line(self, step: str, unit: str, text: str) -> None:
        return None

    def warned(self, text: str) -> None:
        self._output.warn(text)

    def close(self) -> None:
        return None
