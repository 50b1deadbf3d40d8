"""Admission of steps: after what, whether at all, and with which units a step opens."""

from __future__ import annotations

from typing import Any, assert_never

from flowstone.expr.refs import Unresolved
from flowstone.plan.bounds import UNITS
from flowstone.plan.model import FanOut, Join, OnFailure, Route, Single
from flowstone.run.events import ENDED, Status, StepClosed, StepOpened
from flowstone.run.given import given_values
from flowstone.run.identity import Opening
from flowstone.run.outcome import Reason
from flowstone.run.state import StepState
from flowstone.scheduler.bindings import evaluate_condition, resolve, value_type
from flowstone.scheduler.closing import close_step, fail_step
from flowstone.scheduler.commands import Turn
from flowstone.scheduler.settle import settle_route


class NotAList(Exception):
    """What a fan-out names is no list."""


def consider(turn: Turn, step: StepState) -> None:
    """Open, skip or fail a pending step, or leave it pending."""
    if turn.facts.steps_left == 0 or not turn.facts.admitting or step.spent:
        return
    only, halting = turn.facts.only, turn.state.plan.policies.on_failure is OnFailure.HALT
    if only != step.id if only else halting and turn.state.stopped:
        return
    verdict = _join(turn, step)
    if verdict is None:
        return
    if verdict is Status.UPSTREAM_FAILED:
        close_step(turn, step, StepClosed(step.id, turn.now, verdict, error="an upstream step failed"))
        return
    note = _unselected(turn, step)
    if note is not None:
        close_step(turn, step, StepClosed(step.id, turn.now, Status.SKIPPED, detail={"note": note}))
        return
    if step.plan.when is not None and not _condition(turn, step):
        return
    _open(turn, step)


def _join(turn: Turn, step: StepState) -> Status | None:
    """OPEN when the step may start, UPSTREAM_FAILED when it never will, None for not yet."""
    needs = [turn.state.steps[need].status for need in step.plan.needs]
    if Status.UPSTREAM_FAILED in needs:
        return Status.UPSTREAM_FAILED
    if Status.FAILED in needs and step.plan.join is Join.ALL_SATISFIED:
        return Status.UPSTREAM_FAILED
    return Status.OPEN if all(status in ENDED for status in needs) else None


def _unselected(turn: Turn, step: StepState) -> str | None:
    """Why no route selected a step that routes name; None when it is to run."""
    note = None
    for router_id in step.plan.selected_by:
        router = turn.state.steps[router_id]
        selected = (router.detail or {}).get("route", {}).get("selected")
        if selected == step.id:
            return None
        if note is None and router.status is Status.SKIPPED:
            note = f'Skipped by route: step "{router_id}" was itself skipped, so none of its branch targets run.'
        elif note is None:
            note = f'Skipped by route: step "{router_id}" selected "{selected}".'
    return note


def _condition(turn: Turn, step: StepState) -> bool:
    """Whether `if` holds; when it does not, or is no bool, the step has been closed."""
    assert step.plan.when is not None
    try:
        value = evaluate_condition(turn, step.plan.when)
    except ValueError as error:
        fail_step(turn, step, Reason.EXPRESSION_ERROR, f"if: {error}")
        return False
    if not isinstance(value, bool):
        fail_step(turn, step, Reason.EXPRESSION_ERROR, f"if: must be a bool, got {value_type(value)}")
        return False
    if not value:
        close_step(turn, step, StepClosed(step.id, turn.now, Status.SKIPPED))
    return value


def _open(turn: Turn, step: StepState) -> None:
    try:
        opening = _opening(turn, step)
    except (Unresolved, NotAList) as error:
        fail_step(turn, step, Reason.EXPRESSION_ERROR, str(error), whole=True)
        return
    action = step.plan.action
    match action:
        case Route() if step.plan.gate is not None and step.plan.gate.judge is not None:
            turn.record(StepOpened(step.id, turn.now, count=0, loop=step.next_loop))
        case Route():
            settle_route(turn, step, action)
        case Single():
            turn.record(StepOpened(step.id, turn.now, loop=step.next_loop))
            step.opening = opening
        case FanOut():
            count = len(opening.items or [])
            if count > UNITS:
                text = f'Step "{step.id}" would expand to {count} units; a fan-out has at most {UNITS}.'
                fail_step(turn, step, Reason.UNIT_CAP_EXCEEDED, text, whole=True)
                return
            turn.record(StepOpened(step.id, turn.now, count=count, loop=step.next_loop))
            step.opening = opening
        case _:
            assert_never(action)


def _opening(turn: Turn, step: StepState) -> Opening:
    inputs: dict[str, Any] = {}
    for reference in step.plan.inputs:
        try:
            inputs[reference.text] = resolve(turn, reference)
        except Unresolved as error:
            raise Unresolved(f'Step "{step.id}" declared input "{reference.text}" failed to resolve: {error}') from None
    action = step.plan.action
    items = _items(turn, step, action) if isinstance(action, FanOut) else None
    return Opening(
        inputs=inputs, given=given_values(step.plan, lambda reference: resolve(turn, reference)), items=items
    )


def _items(turn: Turn, step: StepState, action: FanOut) -> list[Any]:
    label = f'Step "{step.id}" fan-out "over" ({action.over.text})'
    try:
        items = resolve(turn, action.over)
    except Unresolved as error:
        raise Unresolved(f"{label} failed to resolve: {error}") from None
    if not isinstance(items, list):
        raise NotAList(f"{label} resolved to {_js_type(items)}, not an array.")
    return items


def _js_type(value: Any) -> str:
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, (int, float)):
        return "number"
    return "string" if isinstance(value, str) else "object"
