"""Settling: when a step's units are done, is the result good enough, and what is the artifact?"""

from __future__ import annotations

from typing import Any, assert_never

import msgspec

from flowstone.expr.refs import Unresolved
from flowstone.expr.schema import validate
from flowstone.plan.bounds import BLOB_BYTES
from flowstone.plan.model import FanOut, OnError, OnOutputError, Output, Reducer, Route, Single
from flowstone.run.events import ENDED, Status, StepClosed
from flowstone.run.outcome import Outcome, Reason, is_large
from flowstone.run.state import StepState
from flowstone.scheduler.bindings import evaluate_output, resolve
from flowstone.scheduler.commands import Turn
from flowstone.values import canonical_json

Failure = tuple[Reason, str]


def settle(turn: Turn, step: StepState) -> None:
    """Close an open step whose units have all ended, or that was stopped."""
    outcomes = [unit.attempt.outcome if unit.attempt else None for _, unit in sorted(step.units.items())]
    summary = _summary(step, outcomes)
    if step.halt is not None and step.halt[0] in (Reason.BUDGET_EXCEEDED, Reason.UNIT_CAP_EXCEEDED):
        fail_step(turn, step, *step.halt, whole=True)
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
        fail_step(turn, step, Reason.VALIDATION_ERROR, text, summary=text)
        return
    closed = StepClosed(step.id, turn.now, Status.SUCCEEDED, artifact, summary=summary, detail=detail)
    close_step(turn, step, closed)


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
    close_step(
        turn,
        step,
        StepClosed(step.id, turn.now, Status.SUCCEEDED, artifact=detail, summary=summary, detail=detail),
    )


def match_text(value: Any) -> str:
    """The text form in which route values are compared."""
    return value if isinstance(value, str) else canonical_json(value)


def fail_step(
    turn: Turn,
    step: StepState,
    reason: Reason,
    error: str,
    *,
    summary: str | None = None,
    detail: dict[str, Any] | None = None,
    whole: bool = False,
) -> None:
    """Close a step as failed; `whole` for a failure of the step itself, not of a unit."""
    if whole:
        detail = {**(detail or {}), "error": error}
    close_step(
        turn,
        step,
        StepClosed(
            step.id,
            turn.now,
            Status.FAILED,
            reason=reason,
            error=error,
            summary=summary or error,
            detail=detail,
        ),
    )


def close_step(turn: Turn, step: StepState, closed: StepClosed) -> None:
    """Record the end of a step, unless it would complete a run whose outputs cannot be resolved."""
    closed = _redacted(turn, closed)
    problem = _completion_problem(turn, step, closed)
    if problem is not None:
        turn.decision.refusal = problem
        return
    if turn.facts.steps_left is not None and closed.status in (Status.SUCCEEDED, Status.FAILED):
        turn.facts.steps_left -= 1
    turn.record(closed)


def resolve_outputs(turn: Turn) -> tuple[dict[str, Any] | None, str | None]:
    """The run's exports by name (None without a declaration), or what is wrong with them."""
    values: dict[str, Any] = {}
    problems = []
    for output in turn.state.plan.outputs:
        try:
            values[output.name] = _export(turn, output)
        except ValueError as error:
            problems.append(f"outputs.{output.name}: {error}")
    if problems:
        return None, "\n".join(problems)
    return (values if turn.state.plan.outputs else None), None


def _export(turn: Turn, output: Output) -> Any:
    value = evaluate_output(turn, output.value)
    if turn.state.plan.policies.on_output_error is OnOutputError.ROLL_BACK:
        _refuse_large(turn, output)
    if output.has_schema and (errors := validate(value, output.schema)):
        raise ValueError("; ".join(errors))
    return value


def _refuse_large(turn: Turn, output: Output) -> None:
    """An export is read from what status shows of a step, which holds no large artifact whole."""
    for name in output.value.reads:
        if is_large(turn.state.steps[name].artifact):
            raise ValueError(f'the artifact of step "{name}" is too large to export (more than {BLOB_BYTES} bytes)')


def _completion_problem(turn: Turn, step: StepState, closed: StepClosed) -> str | None:
    """What keeps the run from completing with this step; None when nothing does, or others remain."""
    plan = turn.state.plan
    if not plan.outputs or plan.policies.on_output_error is not OnOutputError.ROLL_BACK:
        return None
    satisfied = closed.status in (Status.SUCCEEDED, Status.SKIPPED)
    others_ended = all(s.status in ENDED for s in turn.state.order if s is not step)
    if not satisfied or not others_ended or any(s.status is Status.FAILED for s in turn.state.order):
        return None
    before, step.artifact = (step.status, step.artifact), closed.artifact
    step.status = closed.status
    _, problem = resolve_outputs(turn)
    step.status, step.artifact = before
    return problem


def _redacted(turn: Turn, closed: StepClosed) -> StepClosed:
    """What expressions made of secret inputs is scrubbed; the values of units were already."""
    made_here = turn.state.steps[closed.step].plan.outputs
    return msgspec.structs.replace(
        closed,
        artifact=turn.redact(closed.artifact) if made_here else closed.artifact,
        error=turn.redact(closed.error),
        summary=turn.redact(closed.summary),
        detail=turn.redact(closed.detail),
    )


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


def _summary(step: StepState, outcomes: list[Outcome | None]) -> str:
    """What the step did, for people (akm facts 14)."""
    made = sum(1 for outcome in outcomes if outcome is not None)
    good = sum(1 for unit in step.units.values() if unit.status is Status.SUCCEEDED)
    bad = [(unit, unit.attempt) for unit in step.units.values() if unit.status is Status.FAILED and unit.attempt]
    text = (
        f'Executed {made} unit(s) for step "{step.id}" via workflow orchestration: '
        f"{good} succeeded, {made - good} failed."
    )
    if step.fans_out and step.count == 0:
        text += " The list was empty."
    if bad:
        recorded = " (recorded, on_error: continue)" if step.plan.on_error is OnError.CONTINUE else ""
        names = ", ".join(
            f"{a.unit} ({a.outcome.reason})" for _, a in sorted(bad, key=lambda b: b[0].index)[:20] if a.outcome
        )
        first = min(bad, key=lambda b: b[0].index)[1]
        text += f" Failures{recorded}: {names}{', …' if len(bad) > 20 else ''}."
        if first.outcome is not None and first.outcome.diagnostic:
            text += f" First failure diagnostic ({first.unit}): {first.outcome.diagnostic}"
    return text
