"""Closing: the one place in which a step's end is recorded, and a run's exports are resolved."""

from __future__ import annotations

from typing import Any

import msgspec

from flowstone.expr.schema import validate
from flowstone.plan.bounds import BLOB_BYTES
from flowstone.plan.model import OnOutputError, Output
from flowstone.run.events import ENDED, Status, StepClosed
from flowstone.run.outcome import Reason, is_large
from flowstone.run.state import StepState
from flowstone.scheduler.bindings import evaluate_output
from flowstone.scheduler.commands import Turn


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
    """Close a step as failed, or held with its child; `whole`: the step itself failed, not a unit."""
    if whole:
        detail = {**(detail or {}), "error": error}
    close_step(
        turn,
        step,
        StepClosed(
            step.id,
            turn.now,
            Status.HELD if reason is Reason.CHILD_BLOCKED else Status.FAILED,
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
