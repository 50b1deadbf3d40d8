"""The state of a run: what `fold` makes of its journal, with the indexes that keep folding cheap.

State is mutable and owned by whoever folds; an event costs the steps that it wakes, never a scan
of all units. Views read it, the scheduler decides on it, and only `fold` changes it.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable
from typing import Any

import msgspec

from flowstone.plan.model import FanOut, Plan, Step
from flowstone.plan.units import AgentSpec, LlmSpec
from flowstone.run.events import RunStatus, Status, StepDecided, StepRejected
from flowstone.run.outcome import Outcome, Reason
from flowstone.run.record import RunSummary
from flowstone.run.usage import Alarms, Used


class Attempt(msgspec.Struct):
    """One attempt of a unit. Times are milliseconds since the epoch.

    `tries` counts how often this attempt number was begun: a resume begins again at 0.
    """

    unit: str
    number: int
    index: int
    hash: str
    started_at: int
    ended_at: int | None = None
    outcome: Outcome | None = None
    lost: bool = False
    tries: int = 1
    stale: bool = False
    """Its result is not wanted again: a person had the step run afresh."""

    @property
    def running(self) -> bool:
        return self.ended_at is None and not self.lost


class UnitState(msgspec.Struct):
    """A unit of a step's present execution: its last attempt, and whether it is done with."""

    index: int
    attempt: Attempt | None = None
    status: Status = Status.PENDING
    retry_at: int | None = None
    first_at: int | None = None


class StepState:
    """A step: its status, its present execution, and every attempt ever made for it."""

    __slots__ = (
        "allowance_from",
        "artifact",
        "attempts",
        "blob",
        "closed",
        "closed_at",
        "count",
        "decided",
        "detail",
        "dispatched",
        "due",
        "error",
        "failures",
        "forgotten",
        "halt",
        "judged",
        "judges_used",
        "loop",
        "next_index",
        "opened_at",
        "opening",
        "place",
        "plan",
        "queue",
        "reason",
        "rejections",
        "result",
        "running",
        "sealed",
        "spent",
        "status",
        "summary",
        "units",
        "used",
    )  # fmt: skip

    def __init__(self, place: int, plan: Step) -> None:
        self.place = place
        self.plan = plan
        self.attempts: dict[tuple[str, int], Attempt] = {}
        self.dispatched = 0
        self.used = Used()
        self.judges_used = Used()
        self.rejections: list[StepRejected] = []
        self.allowance_from = 0
        self.forgotten = 0
        self.decided: StepDecided | None = None
        self.reset()

    def reset(self) -> None:
        """Pending again; attempts that were made stay on record."""
        self.status = Status.PENDING
        self.artifact: Any = None
        self.blob: str | None = None
        self.reason: Reason | None = None
        self.error: str | None = None
        self.summary: str | None = None
        self.detail: Any = None
        self.result: Outcome | None = None
        self.opened_at: int | None = None
        self.closed_at: int | None = None
        self.loop = 0
        self.count = 0
        self.units: dict[int, UnitState] = {}
        self.next_index = 0
        self.running = 0
        self.closed = 0
        self.failures = 0
        self.queue: list[int] = []
        self.due: list[int] = []
        self.halt: tuple[Reason, str] | None = None
        self.opening: Any = None
        self.spent = False
        self.judged: Any = None
        self.sealed: Any = None

    @property
    def id(self) -> str:
        return self.plan.id

    @property
    def fans_out(self) -> bool:
        return isinstance(self.plan.action, FanOut)

    @property
    def next_loop(self) -> int:
        """The number of the next execution: a rejected one is not repeated, a decided one is kept."""
        return max(1, len(self.rejections) + (0 if self.decided is not None else 1))

    def engine(self, index: int) -> str | None:
        """The engine that the unit at `index` is asked of (a judge's is below 0); None for no engine."""
        unit, gate = self.plan.unit, self.plan.gate
        spec = (gate.judge if gate else None) if index < 0 else (unit.spec if unit else None)
        return spec.engine if isinstance(spec, (LlmSpec, AgentSpec)) else None

    @property
    def feedback(self) -> StepRejected | None:
        """What the present execution answers to; None for a first one, and for units that cannot answer."""
        gate = self.plan.gate
        if gate is None or not gate.loops or self.loop < 2:
            return None
        return self.rejections[self.loop - 2]

    def unit(self, index: int) -> UnitState:
        found = self.units.get(index)
        if found is None:
            found = self.units[index] = UnitState(index)
        return found

    def final_attempts(self) -> list[Attempt]:
        """The last attempt of each unit of the last execution, in item order: what the result rests on."""
        last: dict[str, Attempt] = {}
        made = [attempt for attempt in self.attempts.values() if attempt.index >= 0]
        loop = max((loop_of(attempt.unit) for attempt in made), default=1) if self.rejections else 1
        for attempt in made:
            if self.rejections and loop_of(attempt.unit) != loop:
                continue
            known = last.get(attempt.unit)
            if known is None or (attempt.started_at, attempt.number) >= (known.started_at, known.number):
                last[attempt.unit] = attempt
        return sorted(last.values(), key=lambda attempt: attempt.index)


def loop_of(unit: str) -> int:
    """The execution of its step that a unit belongs to, by its id."""
    _, mark, number = unit.rpartition("~l")
    return int(number) if mark and number.isdigit() else 1


class Agenda:
    """Steps to look at, the first of the file first; a step that waits already is not added again."""

    __slots__ = ("_places", "_waiting")

    def __init__(self, places: Iterable[int] = ()) -> None:
        self._places = sorted(places)
        self._waiting = set(self._places)

    def add(self, place: int) -> None:
        if place not in self._waiting:
            self._waiting.add(place)
            heapq.heappush(self._places, place)

    def take(self) -> int | None:
        if not self._places:
            return None
        place = heapq.heappop(self._places)
        self._waiting.discard(place)
        return place

    def clear(self) -> None:
        self._places.clear()
        self._waiting.clear()

    def __len__(self) -> int:
        return len(self._places)


class State:
    """The run so far. `seq` is the number of the last event folded in.

    `stopped` counts the steps that failed or are held, `starved` those that wait for a free slot;
    `engines` counts what runs by engine. `passed` steps at the beginning of the file have ended and
    need no look for the current one.
    """

    def __init__(self, run_id: str, plan: Plan) -> None:
        self.run_id = run_id
        self.plan = plan
        self.seq = 0
        self.status = RunStatus.ACTIVE
        self.started_at: int | None = None
        self.updated_at = 0
        self.closed_at: int | None = None
        self.outputs: Any = None
        self.error: str | None = None
        self.interrupted: str | None = None
        self.steps: dict[str, StepState] = {step.id: StepState(place, step) for place, step in enumerate(plan.steps)}
        self.order: list[StepState] = list(self.steps.values())
        self.dependents = _dependents(plan)
        self.unended = len(self.order)
        self.passed = 0
        self.running = 0
        self.open_steps = 0
        self.dispatched = 0
        self.tokens = 0
        self.alarms = Alarms(plan.budget)
        self.engines: dict[str, int] = {}
        self.stopped = 0
        self.agenda = Agenda(range(len(self.order)))
        self.starved = Agenda()
        self.timers: list[tuple[int, int, int]] = []

    def wake(self, place: int) -> None:
        """Have the scheduler look at a step."""
        self.agenda.add(place)

    def count_running(self, step: StepState, index: int, change: int) -> None:
        """One attempt more (1) or less (-1) runs, and holds a token of its engine."""
        step.running += change
        self.running += change
        engine = step.engine(index)
        if engine is not None:
            self.engines[engine] = self.engines.get(engine, 0) + change

    def next_awake(self) -> StepState | None:
        place = self.agenda.take()
        return None if place is None else self.order[place]

    @property
    def active(self) -> bool:
        return self.status is RunStatus.ACTIVE

    @property
    def current_step(self) -> str | None:
        """The first step in file order that failed, is held or has not ended; None when all have."""
        while self.passed < len(self.order) and self.order[self.passed].status not in _STANDS:
            self.passed += 1
        return self.order[self.passed].id if self.passed < len(self.order) else None

    def running_attempts(self) -> list[tuple[StepState, Attempt]]:
        return [
            (step, unit.attempt)
            for step in self.order
            if step.running
            for unit in step.units.values()
            if unit.attempt is not None and unit.attempt.running
        ]

    def summary(self) -> RunSummary:
        """The row that lists show."""
        return RunSummary(
            status=self.status,
            current_step=None if self.status is RunStatus.SUCCEEDED else self.current_step,
            updated_at=self.updated_at,
            completed_at=self.closed_at,
            outputs=self.outputs,
        )


_STANDS = (Status.FAILED, Status.HELD, Status.OPEN, Status.PENDING)


def _dependents(plan: Plan) -> dict[str, tuple[int, ...]]:
    places: dict[str, list[int]] = {step.id: [] for step in plan.steps}
    for place, step in enumerate(plan.steps):
        for need in step.needs:
            places[need].append(place)
    return {step_id: tuple(found) for step_id, found in places.items()}
