"""fold: an event and the state before it give the state after it. Pure; one function an event."""

from __future__ import annotations

import heapq
from collections.abc import Iterable
from typing import assert_never

from flowstone.plan.model import Plan
from flowstone.run.events import (
    ENDED,
    STOPPED,
    AttemptEnded,
    AttemptStarted,
    DriverStarted,
    Event,
    Recorded,
    RunAbandoned,
    RunClosed,
    RunInterrupted,
    RunReopened,
    RunStatus,
    Status,
    StepClosed,
    StepDecided,
    StepOpened,
    StepRejected,
)
from flowstone.run.state import Attempt, State, StepState


def replay(run_id: str, plan: Plan, recorded: Iterable[Recorded]) -> State:
    """The state that a whole journal gives."""
    state = State(run_id, plan)
    for entry in recorded:
        fold(state, entry.event)
    return state


def fold(state: State, event: Event) -> None:
    """Take one event in; the events of a run are folded in sequence, each once."""
    match event:
        case AttemptEnded():
            _attempt_ended(state, event)
        case AttemptStarted():
            _attempt_started(state, event)
        case StepOpened() | StepClosed() | StepRejected() | StepDecided():
            _fold_step(state, event)
        case _:
            _fold_run(state, event)
    state.seq += 1
    state.updated_at = event.at


def _fold_step(state: State, event: StepOpened | StepClosed | StepRejected | StepDecided) -> None:
    match event:
        case StepOpened():
            _step_opened(state, event)
        case StepClosed():
            _step_closed(state, event)
        case StepRejected():
            _step_rejected(state, event)
        case StepDecided():
            state.steps[event.step].decided = event
        case _:
            assert_never(event)


def _fold_run(state: State, event: DriverStarted | RunClosed | RunReopened | RunAbandoned | RunInterrupted) -> None:
    match event:
        case DriverStarted():
            _driver_started(state, event)
        case RunClosed():
            _run_closed(state, event)
        case RunReopened():
            _run_reopened(state, event)
        case RunAbandoned():
            _run_abandoned(state, event)
        case RunInterrupted():
            state.interrupted = event.cause
        case _:
            assert_never(event)


def set_retry(state: State, step: StepState, index: int, due: int) -> None:
    """A unit waits for its next attempt until `due`; derived by the scheduler, never stored."""
    unit = step.unit(index)
    unit.status = Status.PENDING
    unit.retry_at = due
    heapq.heappush(state.timers, (due, step.place, index))


def close_unit(state: State, step: StepState, index: int, *, ok: bool) -> None:
    """A unit is done with for this execution; derived by the scheduler from its last attempt."""
    unit = step.unit(index)
    unit.status = Status.SUCCEEDED if ok else Status.FAILED
    unit.retry_at = None
    step.closed += 1
    step.failures += 0 if ok else 1
    state.wake(step.place)


def _driver_started(state: State, event: DriverStarted) -> None:
    state.interrupted = None
    if state.started_at is None:
        state.started_at = event.at
    for step in state.order:
        if step.status is Status.OPEN:
            _give_up_execution(state, step, event.at)
    state.timers.clear()
    state.starved.clear()


def _give_up_execution(state: State, step: StepState, at: int) -> None:
    """An execution that a driver left open: what succeeded can be reused, the rest starts again."""
    for unit in step.units.values():
        attempt = unit.attempt
        if attempt is not None and attempt.running:
            attempt.lost = True
            attempt.ended_at = at
            state.dispatched -= 1
            step.dispatched -= 1
            state.count_running(step, attempt.index, -1)
    if step.judged is not None and step.judged.running:
        step.judged.lost = True
        step.judged.ended_at = at
        state.count_running(step, step.judged.index, -1)
    step.reset()
    state.open_steps -= 1
    state.wake(step.place)


def _step_opened(state: State, event: StepOpened) -> None:
    step = state.steps[event.step]
    step.status = Status.OPEN
    step.opened_at = event.at
    step.count = event.count
    step.loop = event.loop
    state.open_steps += 1
    state.wake(step.place)


def _attempt_started(state: State, event: AttemptStarted) -> None:
    step = state.steps[event.step]
    if event.index < 0:
        _judging_started(state, step, event)
        return
    unit = step.unit(event.index)
    key = (event.unit, event.number)
    before = step.attempts.get(key)
    unit.attempt = step.attempts[key] = Attempt(
        event.unit, event.number, event.index, event.hash, event.at, tries=before.tries + 1 if before else 1
    )
    unit.status = Status.OPEN
    unit.retry_at = None
    if unit.first_at is None:
        unit.first_at = event.at
    step.dispatched += 1
    state.count_running(step, event.index, 1)
    state.dispatched += 1
    state.alarms.note("max_units", state.dispatched, event.at)


def _judging_started(state: State, step: StepState, event: AttemptStarted) -> None:
    """A judge is asked: it takes a slot, and never counts as a unit."""
    before = step.attempts.get((event.unit, event.number))
    tries = before.tries + 1 if before else 1
    attempt = Attempt(event.unit, event.number, event.index, event.hash, event.at, tries=tries)
    step.judged = step.attempts[(event.unit, event.number)] = attempt
    state.count_running(step, event.index, 1)


def _attempt_ended(state: State, event: AttemptEnded) -> None:
    step = state.steps[event.step]
    attempt = step.attempts[(event.unit, event.number)]
    attempt.ended_at = event.at
    attempt.outcome = event.outcome
    if event.outcome.tokens:
        _count_tokens(state, step, event)
    if event.index < 0:
        if step.judged is attempt:
            state.count_running(step, event.index, -1)
            state.wake(step.place)
        return
    step.result = event.outcome
    unit = step.units.get(event.index)
    if unit is None or unit.attempt is not attempt:
        return  # the execution that it belonged to is over
    state.count_running(step, event.index, -1)
    step.queue.append(event.index)
    state.wake(step.place)


def _count_tokens(state: State, step: StepState, event: AttemptEnded) -> None:
    """Tokens count for the budget whoever used them, a judge's too (decision 3)."""
    (step.used if event.index >= 0 else step.judges_used).add(event.outcome)
    state.tokens += event.outcome.tokens or 0
    state.alarms.note("max_tokens", state.tokens, event.at)


def _step_closed(state: State, event: StepClosed) -> None:
    step = state.steps[event.step]
    if step.status is Status.OPEN:
        state.open_steps -= 1
    if step.status not in ENDED and event.status in ENDED:
        state.unended -= 1
    state.stopped += (event.status in STOPPED) - (step.status in STOPPED)
    step.status = event.status
    step.closed_at = event.at
    step.artifact, step.blob = event.artifact, event.blob
    step.reason, step.error = event.reason, event.error
    step.summary, step.detail = event.summary, event.detail
    step.decided = None
    if event.status is Status.SKIPPED:
        step.result = None
    for place in state.dependents[step.id]:
        state.wake(place)


def _step_rejected(state: State, event: StepRejected) -> None:
    """The execution is over; the next one, if there is to be one, opens the step again."""
    step = state.steps[event.step]
    if step.status is Status.OPEN:
        state.open_steps -= 1
    step.reset()
    step.rejections.append(event)
    step.spent = event.spent
    state.wake(step.place)


def _run_closed(state: State, event: RunClosed) -> None:
    state.status = event.status
    state.closed_at = event.at if event.status is RunStatus.SUCCEEDED else None
    state.outputs = event.outputs
    state.error = event.error


def _run_abandoned(state: State, event: RunAbandoned) -> None:
    state.status = RunStatus.ABANDONED
    state.closed_at = event.at


def _run_reopened(state: State, event: RunReopened) -> None:
    state.status = RunStatus.ACTIVE
    state.passed = 0
    state.closed_at = None
    state.outputs = None
    state.error = None
    for step_id in event.steps:
        step = state.steps[step_id]
        step.allowance_from = len(step.rejections)
        step.spent = False
        if event.fresh:
            _forget(step)
        if step.status in ENDED:
            state.unended += 1
        if step.status is Status.OPEN:
            _give_up_execution(state, step, event.at)
            continue
        state.stopped -= step.status in STOPPED
        step.reset()
        state.wake(step.place)


def _forget(step: StepState) -> None:
    """What the step's units did stays on record, and is not reused."""
    step.forgotten += 1
    for attempt in step.attempts.values():
        attempt.stale = True
