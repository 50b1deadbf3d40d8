"""The observer of a drive that publishes the documented files, then tells the caller's own watchers."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from flowstone.ports.observer import ChildObserver, Observer, lines_of
from flowstone.run.events import Event
from flowstone.run.state import State

Publish = Callable[[State, Sequence[Event]], tuple[str, ...]]
"""Writes the documented files that events changed; returns warnings."""


class Publisher:
    """Tells everyone who watches: the run's documented files, the caller's callback and observer."""

    def __init__(self, publish: Publish, observer: Observer | None, on_event: Callable[[Event], None] | None) -> None:
        self._publish = publish
        self._observer = observer
        self._on_event = on_event

    def recorded(self, state: State, events: Sequence[Event]) -> None:
        for text in self._publish(state, events):
            self.warned(text)
        if self._on_event is not None:
            for event in events:
                self._on_event(event)
        if self._observer is not None:
            self._observer.recorded(state, events)

    def nested(self, path: str, state: State, events: Sequence[Event]) -> None:
        if isinstance(self._observer, ChildObserver):
            self._observer.nested(path, state, events)

    @property
    def line(self) -> Callable[[str, str, str], None]:
        return self._observer.line if self._observer is not None else _unheard

    @property
    def lines(self) -> Callable[[str, str, Sequence[str]], None]:
        return lines_of(self._observer) if self._observer is not None else _unheard

    def warned(self, text: str) -> None:
        if self._observer is not None:
            self._observer.warned(text)


def _unheard(step: str, unit: str, text: object) -> None:
    """Where nobody listens to what units print."""
