"""What `decide` answers with, and the facts that it gets as values."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from flowstone.ports.dispatcher import Dispatch
from flowstone.run.events import Event
from flowstone.run.fold import fold
from flowstone.run.state import State


class Facts(msgspec.Struct):
    """What a decision may depend on besides the run's state.

    `params` and `connections` are complete, secret ones included. `host_width` and `run_width`
    bound the units that run at one time on this machine and in this run (None: no bound).
    `steps_left` counts the steps that this drive may still finish (None: no bound); deciding
    uses it up. `jitter` is a number from 0 up to 1, a fresh one for each decision.
    """

    params: dict[str, Any]
    connections: dict[str, Any] = {}
    host_width: int | None = None
    run_width: int | None = None
    steps_left: int | None = None
    jitter: float = 0.0


class Decision:
    """Events to make durable (already folded into the state), then attempts to perform.

    `refusal` says why the run cannot complete although all its steps have ended: its outputs
    cannot be resolved. `wake_at` is when to decide again if nothing happens before.
    """

    __slots__ = ("dispatches", "events", "refusal", "wake_at")

    def __init__(self) -> None:
        self.events: list[Event] = []
        self.dispatches: list[Dispatch] = []
        self.wake_at: int | None = None
        self.refusal: str | None = None

    def record(self, state: State, event: Event) -> None:
        fold(state, event)
        self.events.append(event)


class Turn(msgspec.Struct):
    """One call of `decide`: what every part of it needs."""

    state: State
    facts: Facts
    now: int
    decision: Decision
    redact: Callable[[Any], Any]

    def record(self, event: Event) -> None:
        self.decision.record(self.state, event)
