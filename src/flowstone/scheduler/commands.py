"""What `decide` answers with, and the facts that it gets as values."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from flowstone.ports.dispatcher import Dispatch
from flowstone.run.events import Event, StepOpened
from flowstone.run.fold import fold
from flowstone.run.state import State


class Facts(msgspec.Struct):
    """What a decision may depend on besides the run's state.

    `params` and `connections` are complete, secret ones included. `host_width` and `run_width`
    bound the units that run at one time on this machine and in this run (None: no bound).
    `steps_left` counts the steps that this drive may still finish (None: no bound); deciding
    uses it up. `only` names the one step that may open. Without `admitting` nothing new starts: what
    has ended is judged and closed. `jitter` is a number from 0 up to 1, afresh for each decision.
    """

    params: dict[str, Any]
    connections: dict[str, Any] = {}
    host_width: int | None = None
    run_width: int | None = None
    steps_left: int | None = None
    only: str | None = None
    admitting: bool = True
    jitter: float = 0.0


class Decision:
    """Events to make durable (already folded into the state), and attempts to perform.

    `ahead` may be performed before the events are durable: these attempts rest only on what earlier
    decisions recorded, so that a crash loses no more than their start. `behind` must wait for it.
    `refusal` says why the run cannot complete although all its steps have ended: its outputs
    cannot be resolved. `wake_at` is when to decide again if nothing happens before.
    """

    __slots__ = ("ahead", "behind", "events", "opened", "refusal", "wake_at")

    def __init__(self) -> None:
        self.events: list[Event] = []
        self.ahead: list[Dispatch] = []
        self.behind: list[Dispatch] = []
        self.opened: set[str] = set()
        self.wake_at: int | None = None
        self.refusal: str | None = None

    @property
    def dispatches(self) -> list[Dispatch]:
        """All attempts to perform."""
        return self.ahead + self.behind

    def record(self, state: State, event: Event) -> None:
        fold(state, event)
        self.events.append(event)
        if isinstance(event, StepOpened):
            self.opened.add(event.step)

    def hand_out(self, dispatch: Dispatch) -> None:
        """A first attempt of a step that an earlier decision opened rests on nothing of this one."""
        free = dispatch.number == 0 and dispatch.step not in self.opened
        (self.ahead if free else self.behind).append(dispatch)


class Turn(msgspec.Struct):
    """One call of `decide`: what every part of it needs."""

    state: State
    facts: Facts
    now: int
    decision: Decision
    redact: Callable[[Any], Any]

    def record(self, event: Event) -> None:
        self.decision.record(self.state, event)
