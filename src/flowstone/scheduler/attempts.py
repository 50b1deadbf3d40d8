"""Attempts: admit a step's next units, and judge the attempts that have ended.

How often is a sum in the plan (once, retry, poll); whether a failure may be repeated is decided
here, by its reason.
"""

from __future__ import annotations

import heapq
from typing import assert_never

from flowstone.plan.model import Once, OnError, Poll, Retry
from flowstone.run.events import AttemptEnded, AttemptStarted, Status
from flowstone.run.fold import close_unit, set_retry
from flowstone.run.outcome import Outcome, Reason, failed
from flowstone.run.state import Attempt, State, StepState, UnitState
from flowstone.scheduler.bindings import evaluate_until, identity_of, prepare, seal_outputs, value_type
from flowstone.scheduler.capacity import free_in_step, starved
from flowstone.scheduler.commands import Turn


def admit(turn: Turn, step: StepState) -> None:
    """Start as many units as there are slots: those whose wait is over first, then new ones."""
    while turn.facts.admitting and step.halt is None and (index := _next_unit(turn, step)) is not None:
        free = free_in_step(turn, step)
        if free == 0:
            if starved(turn, step):
                turn.state.starved.add(step.place)
            return
        if not _within_budget(turn, step):
            return
        _start(turn, step, step.unit(index))


def judge_ended(turn: Turn, step: StepState) -> None:
    """Close or repeat the units whose attempts have ended since the last look."""
    while step.queue:
        index = step.queue.pop(0)
        unit = step.unit(index)
        attempt = unit.attempt
        if attempt is not None and attempt.outcome is not None and unit.status is Status.OPEN:
            _judge(turn, step, unit, attempt)
    ring_timers(turn.state, turn.now)


def ring_timers(state: State, now: int) -> None:
    """Units whose wait is over become ready; a timer of a unit that went on is dropped."""
    while state.timers and state.timers[0][0] <= now:
        due, place, index = heapq.heappop(state.timers)
        step = state.order[place]
        unit = step.units.get(index)
        if unit is not None and unit.status is Status.PENDING and unit.retry_at == due:
            step.due.append(index)
            state.wake(place)


def _next_unit(turn: Turn, step: StepState) -> int | None:
    if step.due:
        return step.due[0]
    while step.next_index < step.count:
        if not _reuse(turn, step, step.next_index):
            return step.next_index
        step.next_index += 1
    return None


def _reuse(turn: Turn, step: StepState, index: int) -> bool:
    """Close a unit that succeeded before with the same input hash."""
    if not step.attempts or not turn.state.plan.policies.reuse_units:
        return False
    identity = identity_of(turn, step, index)
    number = 0
    while (attempt := step.attempts.get((identity.unit, number))) is not None:
        if attempt.outcome and attempt.outcome.ok and attempt.hash == identity.hash and not attempt.stale:
            step.unit(index).attempt = attempt
            close_unit(turn.state, step, index, ok=True)
            return True
        number += 1
    return False


def _within_budget(turn: Turn, step: StepState) -> bool:
    """Whether one more dispatch is allowed; if not, the step is stopped."""
    budget, state, cap = turn.state.plan.budget, turn.state, turn.state.plan.policies.unit_cap
    if cap is not None and state.dispatched >= cap:
        step.halt = (Reason.UNIT_CAP_EXCEEDED, f"unit cap exceeded: a run dispatches at most {cap} units")
    elif budget.max_units is not None and state.dispatched >= budget.max_units:
        step.halt = (Reason.BUDGET_EXCEEDED, "budget exceeded (max_units ceiling)")
    elif budget.max_tokens is not None and state.tokens >= budget.max_tokens:
        step.halt = (Reason.BUDGET_EXCEEDED, "budget exceeded (max_tokens ceiling)")
    return step.halt is None


def _start(turn: Turn, step: StepState, unit: UnitState) -> None:
    """Record the start of a unit's next attempt and hand it out."""
    if unit.attempt is not None and unit.retry_at is not None:
        number = unit.attempt.number + 1
        step.due.remove(unit.index)
    else:
        number = 0
        step.next_index = max(step.next_index, unit.index + 1)
    identity = identity_of(turn, step, unit.index)
    turn.record(AttemptStarted(step.id, identity.unit, turn.now, identity.hash, number, unit.index))
    try:
        prepared = prepare(turn, step, unit, identity, number)
    except ValueError as error:
        outcome = failed(Reason.EXPRESSION_ERROR, turn.redact(str(error)), ran=False)
        turn.record(AttemptEnded(step.id, identity.unit, turn.now, outcome, number, unit.index))
        judge_ended(turn, step)
        return
    turn.decision.hand_out(prepared)


def _judge(turn: Turn, step: StepState, unit: UnitState, attempt: Attempt) -> None:
    assert attempt.outcome is not None
    repeat = step.plan.repeat
    match repeat:
        case Once():
            _accept(turn, step, unit, attempt.outcome)
        case Retry():
            if not _accept_or_retry(turn, step, unit, attempt, repeat):
                _close_failed(turn, step, unit)
        case Poll():
            _judge_poll(turn, step, unit, attempt, repeat)
        case _:
            assert_never(repeat)


def _accept(turn: Turn, step: StepState, unit: UnitState, outcome: Outcome) -> bool:
    """Close the unit by its outcome and its declared outputs; False when it failed."""
    problem = _seal(turn, step, outcome)
    if problem is None:
        close_unit(turn.state, step, unit.index, ok=True)
        return True
    _close_failed(turn, step, unit, problem)
    return False


def _accept_or_retry(turn: Turn, step: StepState, unit: UnitState, attempt: Attempt, retry: Retry) -> bool:
    assert attempt.outcome is not None
    problem = _seal(turn, step, attempt.outcome)
    if problem is None:
        close_unit(turn.state, step, unit.index, ok=True)
        return True
    listed = retry.reasons is None or (problem.reason is not None and problem.reason.value in retry.reasons)
    if listed and attempt.number < retry.extra and step.halt is None:
        set_retry(turn.state, step, unit.index, turn.now + _delay(turn, retry, attempt))
        return True
    _note_problem(unit, problem)
    return False


def _delay(turn: Turn, retry: Retry, attempt: Attempt) -> int:
    """Milliseconds until the next attempt; what the other side asked for comes first."""
    outcome, backoff = attempt.outcome, retry.backoff
    if outcome is not None and outcome.retry_after_ms is not None:
        return min(outcome.retry_after_ms, retry.cap_ms)
    doublings = min(attempt.number, 40)
    if backoff is not None and outcome is not None and outcome.reason in backoff.reasons:
        # Units that were refused together do not come back together.
        chance = (turn.facts.jitter + attempt.index * _GOLDEN) % 1
        return min(backoff.cap_ms, int((backoff.base_ms << doublings) * (1 + chance / 2)))
    return min(retry.base_ms << (doublings if retry.exponential else 0), retry.cap_ms)


_GOLDEN = 0.618034
"""Multiples of it lie evenly between 0 and 1 (their parts behind the point)."""


def _judge_poll(turn: Turn, step: StepState, unit: UnitState, attempt: Attempt, poll: Poll) -> None:
    """Done when `until` holds; again after the interval; failed at the deadline."""
    assert attempt.outcome is not None
    assert unit.first_at is not None
    last, satisfied = attempt.outcome.error, False
    if attempt.outcome.ran and attempt.outcome.reason is not Reason.TIMEOUT:
        try:
            value = evaluate_until(turn, step, poll, attempt)
        except ValueError as error:
            last = last or str(error)
        else:
            if not isinstance(value, bool):
                text = f"poll.until must be a bool, got {value_type(value)}"
                _close_failed(turn, step, unit, failed(Reason.EXPRESSION_ERROR, text))
                return
            satisfied = value
    if satisfied:
        _accept(turn, step, unit, _as_success(attempt.outcome))
        return
    deadline = unit.first_at + poll.timeout_ms
    due = turn.now + poll.interval_ms
    if due < deadline:
        set_retry(turn.state, step, unit.index, due)
        return
    text = f"poll: {poll.until.source} not satisfied within {poll.timeout_text} after {attempt.number + 1} attempt(s)"
    text += f": {last}" if last else ""
    _close_failed(turn, step, unit, failed(Reason.POLL_EXPIRED, text))


def _as_success(outcome: Outcome) -> Outcome:
    """A satisfying attempt counts as success, also when its command exited non-zero."""
    return Outcome(value=outcome.value, exit_code=outcome.exit_code, stdout=outcome.stdout, stderr=outcome.stderr)


def _seal(turn: Turn, step: StepState, outcome: Outcome) -> Outcome | None:
    """Compute declared outputs from a successful outcome; the failed outcome if there is one."""
    if not outcome.ok:
        return outcome
    if not step.plan.outputs:
        return None
    try:
        step.sealed = seal_outputs(turn, step, outcome)
    except ValueError as error:
        return failed(Reason.OUTPUT_ERROR, str(error))
    return None


def _close_failed(turn: Turn, step: StepState, unit: UnitState, problem: Outcome | None = None) -> None:
    if problem is not None:
        _note_problem(unit, problem)
    close_unit(turn.state, step, unit.index, ok=False)
    if step.plan.on_error is OnError.FAIL and unit.attempt is not None and unit.attempt.outcome is not None:
        outcome = unit.attempt.outcome
        step.halt = (outcome.reason or Reason.REPORTED_FAILURE, outcome.error or "a unit failed")


def _note_problem(unit: UnitState, problem: Outcome) -> None:
    """What the scheduler found wrong takes the place of the outcome in this execution."""
    attempt = unit.attempt
    if attempt is not None and problem is not attempt.outcome:
        unit.attempt = Attempt(
            attempt.unit,
            attempt.number,
            attempt.index,
            attempt.hash,
            attempt.started_at,
            attempt.ended_at,
            problem,
        )
