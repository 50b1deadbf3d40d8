"""A run's state as bars over time: what each step's units did, and what they waited for.

All times are milliseconds from the run's start. A step of thousands of units keeps its longest
bars and says how many it left out.
"""

from __future__ import annotations

import heapq
from enum import StrEnum

import msgspec

from flowstone.plan.model import Poll
from flowstone.run.events import Status
from flowstone.run.state import Attempt, State, StepState

BARS = 200
"""Bars that are kept of one step."""


class BarKind(StrEnum):
    UNIT = "unit"
    """An attempt of a unit."""
    WAIT = "wait"
    """A unit between two attempts: the delay of a retry or the interval of a poll."""
    QUEUE = "queue"
    """A step that could start, or a unit of an open one, and no slot was free."""


class Bar(msgspec.Struct, frozen=True):
    """From `start` to `end`; `lane` is the line inside the step's row that it stands in, from 0."""

    kind: BarKind
    label: str
    start: int
    end: int
    status: Status
    lane: int = 0


class Row(msgspec.Struct, frozen=True):
    """One step: when it was open, its bars by start, the lanes they need, and the bars left out."""

    step: str
    status: Status
    start: int | None
    end: int | None
    bars: tuple[Bar, ...] = ()
    lanes: int = 0
    hidden: int = 0


class Timeline(msgspec.Struct, frozen=True):
    """`length` is the run's age or its whole duration; the rows stand in the file's order."""

    length: int
    rows: tuple[Row, ...]


def timeline(state: State, now: int, bars: int = BARS) -> Timeline:
    """Lay a run out in time; `now` ends what still runs, in milliseconds since the epoch."""
    start = state.started_at if state.started_at is not None else now
    end = max(_end(state, now), start)
    return Timeline(end - start, tuple(_row(state, step, start, end, bars) for step in state.order))


def _end(state: State, now: int) -> int:
    if state.active and state.interrupted is None:
        return now
    return state.closed_at or state.updated_at


def _row(state: State, step: StepState, start: int, end: int, limit: int) -> Row:
    found = _queued(state, step, start)
    for attempts in _by_unit(step):
        found += _unit_bars(step, attempts, start, end)
    kept = heapq.nlargest(limit, found, key=lambda bar: (bar.end - bar.start, -bar.start))
    placed, lanes = _in_lanes(sorted(kept, key=lambda bar: (bar.start, bar.end)))
    began, closed = _span(step, found, start)
    return Row(step.id, step.status, began, closed, placed, lanes, len(found) - len(placed))


def _span(step: StepState, bars: list[Bar], start: int) -> tuple[int | None, int | None]:
    began = step.opened_at - start if step.opened_at is not None else None
    units = [bar.start for bar in bars if bar.kind is BarKind.UNIT]
    if units:
        began = min([*units, *([began] if began is not None else [])])
    return began, step.closed_at - start if step.closed_at is not None else None


def _queued(state: State, step: StepState, start: int) -> list[Bar]:
    """The time between the end of the last need and the step's first unit."""
    first = min((attempt.started_at for attempt in step.attempts.values()), default=None)
    ends = [state.steps[need].closed_at for need in step.plan.needs]
    if first is None or step.opened_at is None or any(end is None for end in ends):
        return []
    ready = max([end for end in ends if end is not None], default=start)
    return _bar(BarKind.QUEUE, step.id, ready - start, first - start, Status.PENDING)


def _by_unit(step: StepState) -> list[list[Attempt]]:
    units: dict[str, list[Attempt]] = {}
    for attempt in step.attempts.values():
        units.setdefault(attempt.unit, []).append(attempt)
    return [sorted(attempts, key=lambda attempt: attempt.started_at) for attempts in units.values()]


def _unit_bars(step: StepState, attempts: list[Attempt], start: int, end: int) -> list[Bar]:
    bars: list[Bar] = []
    before: int | None = None
    for attempt in attempts:
        label = attempt.unit if attempt.number == 0 else f"{attempt.unit}~r{attempt.number}"
        if before is not None:
            bars += _bar(BarKind.WAIT, label, before - start, attempt.started_at - start, Status.PENDING)
        ended = attempt.ended_at if attempt.ended_at is not None else end
        bars.append(Bar(BarKind.UNIT, label, attempt.started_at - start, ended - start, _status(step, attempt)))
        before = ended
    return bars


def _bar(kind: BarKind, label: str, start: int, end: int, status: Status) -> list[Bar]:
    return [Bar(kind, label, start, end, status)] if end > start >= 0 else []


def _status(step: StepState, attempt: Attempt) -> Status:
    if attempt.lost:
        return Status.CANCELLED
    if attempt.outcome is None:
        return Status.OPEN
    if attempt.outcome.ok:
        return Status.SUCCEEDED
    satisfied = isinstance(step.plan.repeat, Poll) and step.status is Status.SUCCEEDED
    return Status.PENDING if satisfied else Status.FAILED


def _in_lanes(bars: list[Bar]) -> tuple[tuple[Bar, ...], int]:
    """Give each bar the first lane that is free at its start."""
    busy: list[tuple[int, int]] = []
    free: list[int] = []
    lanes = 0
    placed = []
    for bar in bars:
        while busy and busy[0][0] <= bar.start:
            heapq.heappush(free, heapq.heappop(busy)[1])
        if free:
            lane = heapq.heappop(free)
        else:
            lane, lanes = lanes, lanes + 1
        heapq.heappush(busy, (bar.end, lane))
        placed.append(msgspec.structs.replace(bar, lane=lane))
    return tuple(placed), lanes
