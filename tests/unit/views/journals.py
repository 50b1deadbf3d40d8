"""Journals written by hand, folded into the state that views read. Times are milliseconds."""

from __future__ import annotations

from typing import Any

from flowstone.plan.codec import encode_plan
from flowstone.plan.model import Plan
from flowstone.run.events import (
    AttemptEnded,
    AttemptStarted,
    DriverStarted,
    Event,
    RunClosed,
    RunReopened,
    RunStatus,
    Status,
    StepClosed,
    StepOpened,
)
from flowstone.run.fold import fold
from flowstone.run.outcome import Outcome, Reason, failed
from flowstone.run.record import RunRecord, RunRow
from flowstone.run.state import State

RUN = "01a2f0aa-0000-7000-8000-000000000001"
T0 = 1_700_000_000_000


def opened(step: str, at: int, count: int = 1) -> Event:
    return StepOpened(step, T0 + at, count)


def started(step: str, at: int, *, unit: str | None = None, index: int = 0, number: int = 0, hash: str = "h1") -> Event:
    return AttemptStarted(step, unit or f"{step}:solo", T0 + at, hash, number, index)


def ended(step: str, at: int, outcome: Outcome, *, unit: str | None = None, index: int = 0, number: int = 0) -> Event:
    return AttemptEnded(step, unit or f"{step}:solo", T0 + at, outcome, number, index)


def closed(step: str, at: int, status: Status = Status.SUCCEEDED, **fields: Any) -> Event:
    return StepClosed(step, T0 + at, status, **fields)


def driver(at: int = 0) -> Event:
    return DriverStarted(T0 + at, "pid 1")


def reopened(at: int, *steps: str) -> Event:
    return RunReopened(T0 + at, steps)


def run_closed(at: int, status: RunStatus, **fields: Any) -> Event:
    return RunClosed(T0 + at, status, **fields)


def good(value: Any = None) -> Outcome:
    return Outcome(value=value)


def bad(error: str = "exited 1", diagnostic: str | None = None) -> Outcome:
    outcome = failed(Reason.NON_ZERO_EXIT, error)
    return outcome if diagnostic is None else Outcome(outcome.reason, error=error, diagnostic=diagnostic)


def ran(step: str, start: int, end: int, value: Any = None, hash: str = "h1") -> list[Event]:
    """A step of one unit from its opening to its success."""
    return [
        opened(step, start),
        started(step, start, hash=hash),
        ended(step, end, good(value)),
        closed(step, end, artifact=value),
    ]


def broke(step: str, start: int, end: int, error: str = "exited 1", diagnostic: str | None = None) -> list[Event]:
    """A step of one unit from its opening to its failure."""
    return [
        opened(step, start),
        started(step, start),
        ended(step, end, bad(error, diagnostic)),
        closed(step, end, Status.FAILED, reason=Reason.NON_ZERO_EXIT, error=error),
    ]


def state_of(plan: Plan, events: list[Event]) -> State:
    state = State(RUN, plan)
    for event in events:
        fold(state, event)
    return state


def row_of(plan: Plan, state: State, title: str = "Flow", params: Any = None) -> RunRow:
    record = RunRecord(
        id=RUN,
        dialect="akm",
        ref="/home/me/flow.md",
        title=title,
        scope="/home/me",
        cwd="/home/me",
        plan=encode_plan(plan),
        plan_hash="ab" * 32,
        created_at=T0,
        source_path="/home/me/flow.md",
        params=params,
    )
    return RunRow(record, state.summary())
