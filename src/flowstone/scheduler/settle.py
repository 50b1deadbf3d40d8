"""Settling: when a step's units are done, is the result good enough, and what is the artifact?"""

from __future__ import annotations

from typing import Any, assert_never

from flowstone.expr.refs import Unresolved
from flowstone.expr.schema import validate
from flowstone.plan.model import FanOut, OnError, Reducer, Route, Single
from flowstone.run.events import Status, StepClosed
from flowstone.run.outcome import Outcome, Reason
from flowstone.run.state import StepState
from flowstone.run.summary import summary_of, whole_failure, with_vote
from flowstone.scheduler.bindings import resolve
from flowstone.scheduler.closing import fail_step
from flowstone.scheduler.commands import Turn
from flowstone.scheduler.gates import conclude, loops_left, reject
from flowstone.values import canonical_json

Failure = tuple[Reason, str]


def settle(turn: Turn, step: StepState) -> None:
    """Close an open step whose units have all ended, or that was stopped."""
    if isinstance(step.plan.action, Route):
        settle_route(turn, step, step.plan.action)
        return
    outcomes = [unit.attempt.outcome if unit.attempt else None for _, unit in sorted(step.units.items())]
    summary = summary_of(step, outcomes)
    if (failure := whole_failure(step, outcomes)) is not None:
        fail_step(turn, step, *failure, whole=True)
        return
    if step.failures and (step.plan.on_error is OnError.FAIL or step.halt is not None):
        reason, error = _first_failure(step, outcomes)
        fail_step(turn, step, reason, error, summary=summary)
        return
    artifact, detail, problem = _reduce(step, outcomes)
    if problem is not None:
        fail_step(turn, step, *problem, summary=f"{summary} {problem[1]}", detail=detail)
        return
    if step.plan.outputs:
        artifact = step.sealed
    elif step.plan.has_schema and (errors := validate(artifact, step.plan.schema)):
        text = (
            f'Step "{step.id}" artifact failed validation against the step\'s declared output schema: '
            f"{'; '.join(errors)}"
        )
        if loops_left(step, step.plan.gate):
            reject(turn, step, text, (), by_schema=True)
        else:
            fail_step(turn, step, Reason.VALIDATION_ERROR, text, summary=text)
        return
    summary = with_vote(summary, detail)
    conclude(turn, step, StepClosed(step.id, turn.now, Status.SUCCEEDED, artifact, summary=summary, detail=detail))


def settle_route(turn: Turn, step: StepState, route: Route) -> None:
    """Decide a route and close its step; nothing is dispatched."""
    prefix = f'Step "{step.id}" route failed: '
    try:
        value = resolve(turn, route.value)
    except Unresolved as error:
        text = f"{prefix}route input {route.value.text} failed to resolve: {error}"
        fail_step(turn, step, Reason.ROUTE_ERROR, text, whole=True)
        return
    if isinstance(value, (dict, list)):
        text = f"{prefix}route input {route.value.text} resolved to a non-primitive value."
        fail_step(turn, step, Reason.ROUTE_ERROR, text, whole=True)
        return
    spelt = match_text(value)
    selected = next((b.step for b in route.branches if b.match == spelt), route.default)
    if selected is None:
        text = f'{prefix}value "{spelt}" matched no "when:" branch and the route declares no default.'
        fail_step(turn, step, Reason.ROUTE_ERROR, text, whole=True)
        return
    detail = {"route": {"input": route.value.text, "value": spelt, "selected": selected}}
    summary = f'Step "{step.id}" routed on {route.value.text}: value "{spelt}" selected step "{selected}".'
    conclude(
        turn,
        step,
        StepClosed(step.id, turn.now, Status.SUCCEEDED, artifact=detail, summary=summary, detail=detail),
    )


def match_text(value: Any) -> str:
    """The text form in which route values are compared."""
    return value if isinstance(value, str) else canonical_json(value)


def _reduce(step: StepState, outcomes: list[Outcome | None]) -> tuple[Any, dict[str, Any] | None, Failure | None]:
    """The artifact, what a view may show of its making, and why there is none."""
    action = step.plan.action
    match action:
        case Single():
            return _value(outcomes[0]) if outcomes else None, None, None
        case FanOut(reducer=Reducer.COLLECT):
            return [_value(outcome) for outcome in outcomes], None, None
        case FanOut():
            return _vote(outcomes)
        case Route():
            return None, None, None
        case _:
            assert_never(action)


def _vote(outcomes: list[Outcome | None]) -> tuple[Any, dict[str, Any] | None, Failure | None]:
    """The most frequent successful result; a tie at the top, or no success, fails."""
    if not outcomes:
        return None, None, None
    counts: dict[str, tuple[int, Any]] = {}
    for outcome in outcomes:
        if outcome is not None and outcome.ok:
            key = canonical_json(outcome.value)
            counts[key] = (counts.get(key, (0, None))[0] + 1, outcome.value)
    ranked = sorted(counts.values(), key=lambda entry: -entry[0])
    if not ranked:
        error = "vote: no unit succeeded, so there is no winner."
        return None, {"voteError": error}, (Reason.VOTE_TIED, error)
    if len(ranked) > 1 and ranked[0][0] == ranked[1][0]:
        error = f"vote: a tie at the top with {ranked[0][0]} vote(s) each."
        return None, {"voteError": error}, (Reason.VOTE_TIED, error)
    votes, winner = ranked[0]
    return winner, {"vote": {"winner": winner, "votes": votes, "total": len(outcomes)}}, None


def _value(outcome: Outcome | None) -> Any:
    return outcome.value if outcome is not None and outcome.ok else None


def _first_failure(step: StepState, outcomes: list[Outcome | None]) -> Failure:
    for outcome in outcomes:
        if outcome is not None and outcome.reason is not None:
            return outcome.reason, outcome.error or outcome.reason.value
    return step.halt or (Reason.REPORTED_FAILURE, "a unit failed")
