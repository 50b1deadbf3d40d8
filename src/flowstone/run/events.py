"""Events: what the journal of a run holds, in sequence. State is a fold of them.

Times are milliseconds since the epoch. Only the driver that holds the run's lease appends events;
the outcome inside `AttemptEnded` was recorded by whoever ran the unit, first writer wins.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Any, TypeAlias

import msgspec

from flowstone.run.outcome import Outcome, Reason


class Status(StrEnum):
    """The statuses of steps and units; a language's dialect renders its own words."""

    PENDING = "pending"
    OPEN = "open"
    SUCCEEDED = "succeeded"
    SKIPPED = "skipped"
    FAILED = "failed"
    UPSTREAM_FAILED = "upstream_failed"
    HELD = "held"
    CANCELLED = "cancelled"


ENDED = frozenset({Status.SUCCEEDED, Status.SKIPPED, Status.FAILED, Status.UPSTREAM_FAILED})
STOPPED = frozenset({Status.FAILED, Status.HELD})


class RunStatus(StrEnum):
    ACTIVE = "active"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    HELD = "held"
    ABANDONED = "abandoned"


class DriverStarted(msgspec.Struct, frozen=True, tag="driver-started", omit_defaults=True):
    """A driver took the run; attempts that had started and not ended are lost."""

    at: int
    driver: str


class StepOpened(msgspec.Struct, frozen=True, tag="step-opened", omit_defaults=True):
    """A step began its `loop`-th execution with `count` units."""

    step: str
    at: int
    count: int = 1
    loop: int = 1


class AttemptStarted(msgspec.Struct, frozen=True, tag="attempt-started", omit_defaults=True):
    """Attempt `number` (0 the first) of a unit began; `hash` is the unit's input hash."""

    step: str
    unit: str
    at: int
    hash: str
    number: int = 0
    index: int = 0


class AttemptEnded(msgspec.Struct, frozen=True, tag="attempt-ended", omit_defaults=True):
    step: str
    unit: str
    at: int
    outcome: Outcome
    number: int = 0
    index: int = 0


class StepClosed(msgspec.Struct, frozen=True, tag="step-closed", omit_defaults=True):
    """A step ended. `artifact` is its value (in the blob store under `blob` when large).

    `error` is one line for people, `summary` the longer account, `detail` what a view may show
    (selection of a route, votes, who skipped it).
    """

    step: str
    at: int
    status: Status
    artifact: Any = None
    blob: str | None = None
    reason: Reason | None = None
    error: str | None = None
    summary: str | None = None
    detail: Any = None


class StepRejected(msgspec.Struct, frozen=True, tag="step-rejected", omit_defaults=True):
    """Execution `loop` of a step was not good enough: a judge's verdict, or its output schema's.

    `spent` tells that no further execution is allowed until a person resumes the run.
    """

    step: str
    at: int
    loop: int
    feedback: str
    missing: tuple[str, ...] = ()
    by_schema: bool = False
    spent: bool = False


class StepDecided(msgspec.Struct, frozen=True, tag="step-decided", omit_defaults=True):
    """A person took the judge's place for the last execution of a step."""

    step: str
    at: int
    approved: bool
    by: str
    note: str | None = None


class RunClosed(msgspec.Struct, frozen=True, tag="run-closed", omit_defaults=True):
    at: int
    status: RunStatus
    outputs: Any = None
    error: str | None = None


class RunReopened(msgspec.Struct, frozen=True, tag="run-reopened", omit_defaults=True):
    """A person resumed the run: the steps named are pending again; `fresh`, nothing of them is reused."""

    at: int
    steps: tuple[str, ...]
    fresh: bool = False


class RunAbandoned(msgspec.Struct, frozen=True, tag="run-abandoned"):
    at: int


class RunInterrupted(msgspec.Struct, frozen=True, tag="run-interrupted"):
    """A driver stopped on request; the run can be taken up again."""

    at: int
    cause: str


Event: TypeAlias = (
    DriverStarted
    | StepOpened
    | AttemptStarted
    | AttemptEnded
    | StepClosed
    | StepRejected
    | StepDecided
    | RunClosed
    | RunReopened
    | RunAbandoned
    | RunInterrupted
)


class Recorded(msgspec.Struct, frozen=True):
    """An event with its sequence number in the run, counting from 1."""

    seq: int
    event: Event
