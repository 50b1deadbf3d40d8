"""Live progress: what a driver tells whoever watches, always after the commit."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol, runtime_checkable

from flowstone.run.events import Event
from flowstone.run.state import State


class Observer(Protocol):
    """Watches a run. It must not raise, block or change anything."""

    def recorded(self, state: State, events: Sequence[Event]) -> None:
        """Events that have just become durable; `state` has them folded in."""

    def line(self, step: str, unit: str, text: str) -> None:
        """One redacted line that a running unit printed, without its line feed."""

    def warned(self, text: str) -> None:
        """A warning about the run, for people."""


@runtime_checkable
class BlockObserver(Observer, Protocol):
    """An observer that takes many lines at once: a command may print millions, and each call counts."""

    def lines(self, step: str, unit: str, texts: Sequence[str]) -> None:
        """As `line`, for lines that were printed one after the other."""


def lines_of(observer: Observer) -> Callable[[str, str, Sequence[str]], None]:
    """How to tell an observer of several lines: at once where it takes them so."""
    if isinstance(observer, BlockObserver) and callable(observer.lines):
        return observer.lines
    line = observer.line

    def _one_by_one(step: str, unit: str, texts: Sequence[str]) -> None:
        for text in texts:
            line(step, unit, text)

    return _one_by_one


@runtime_checkable
class ChildObserver(Observer, Protocol):
    """An observer that is also told what becomes of the runs of nested workflows."""

    def nested(self, path: str, state: State, events: Sequence[Event]) -> None:
        """As `recorded`, for the child run of the step `path` (`parent/child` where deeper).

        What a child prints comes by `line`, its steps and units with the path in front.
        """
