"""What `akm workflow run` tells on stderr while a run goes on: warnings, and progress where it helps."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from flowstone.cli.render.formats import Output

if TYPE_CHECKING:
    from flowstone.run.events import Event
    from flowstone.run.state import State


class Progress:
    """An observer (ports.observer): passes warnings on. stdout stays free for the envelope."""

    def __init__(self, output: Output) -> None:
        self._output = output
        self.lines = False

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, *_: object) -> None:
        return None

    def recorded(self, state: State, events: Sequence[Event]) -> None:
        return None

    def line(self, step: str, unit: str, text: str) -> None:
        return None

    def warned(self, text: str) -> None:
        self._output.warn(text)
