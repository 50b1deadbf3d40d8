"""decide: a plan, a run's state and the time give what to record and what to dispatch next. Pure.

The same function drives a run in this process and inside a durable workflow engine, so it does no
I/O, reads no clock and draws no random number.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from flowstone.plan.model import OnFailure
from flowstone.run.events import STOPPED, RunClosed, RunStatus, Status
from flowstone.run.state import State, StepState
from flowstone.scheduler.admission import consider
from flowstone.scheduler.attempts import admit, judge_ended, ring_timers
from flowstone.scheduler.capacity import feed_starved
from flowstone.scheduler.closing import resolve_outputs
from flowstone.scheduler.commands import Decision, Facts, Turn
from flowstone.scheduler.settle import settle


def decide(state: State, facts: Facts, now: int, redact: Callable[[Any], Any] = lambda value: value) -> Decision:
    """Everything that can be decided now, until nothing more follows.

    The events of the answer are folded into `state`; the caller makes them durable before it acts
    on the dispatches, and gives up the state when that fails. `redact` is applied to artifacts that
    expressions made, before they are recorded.
    """
    turn = Turn(state, facts, now, Decision(), redact)
    if not state.active:
        return turn.decision
    while turn.decision.refusal is None and (step := _next(turn)) is not None:
        _advance(turn, step)
    _close_run(turn)
    if state.active and state.timers:
        turn.decision.wake_at = state.timers[0][0]
    return turn.decision


def _next(turn: Turn) -> StepState | None:
    """The next step to look at: the first of those that something happened to."""
    ring_timers(turn.state, turn.now)
    if turn.state.starved:
        feed_starved(turn)
    return turn.state.next_awake()


def _advance(turn: Turn, step: StepState) -> None:
    if step.status is Status.PENDING:
        consider(turn, step)
    if step.status is Status.OPEN:
        judge_ended(turn, step)
        admit(turn, step)
        if step.running == 0 and (step.closed == step.count or step.halt is not None):
            settle(turn, step)


def _close_run(turn: Turn) -> None:
    state = turn.state
    if not state.active or turn.decision.refusal is not None or state.open_steps:
        return
    if state.stopped and state.plan.policies.on_failure is OnFailure.HALT:
        stopped = next((s for s in state.order if s.status in STOPPED), None)
        if stopped is not None:
            status = RunStatus.FAILED if stopped.status is Status.FAILED else RunStatus.HELD
            turn.record(RunClosed(turn.now, status, error=stopped.error))
            return
    if state.unended:
        return
    bad = next((s for s in state.order if _spoils(s)), None)
    if bad is not None:
        turn.record(RunClosed(turn.now, RunStatus.FAILED, error=bad.error))
        return
    outputs, problem = resolve_outputs(turn)
    if problem is not None:
        turn.record(RunClosed(turn.now, RunStatus.FAILED, error=problem))
        return
    turn.record(RunClosed(turn.now, RunStatus.SUCCEEDED, outputs=turn.redact(outputs)))


def _spoils(step: StepState) -> bool:
    """Whether a step's end makes the whole run fail."""
    if step.status is Status.FAILED:
        return not step.plan.tolerated
    return step.status is Status.UPSTREAM_FAILED
