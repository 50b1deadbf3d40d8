"""The plan view: a frozen plan as `workflow plan` shows it, without anything that may be secret."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from flowstone.expr.model import Expression, Literal, Record, Reference
from flowstone.plan.checks.nesting import exports_of
from flowstone.plan.model import FanOut, Output, Plan, Route, Step
from flowstone.plan.units import ChildSpec
from flowstone.views.specs import binding_view, bindings_of, engine_of, step_kind, target_kind


class PlanOrigin(msgspec.Struct, frozen=True):
    """Where a plan came from: the workflow's ref, the format and path of its source."""

    ref: str
    format: str
    path: str


def plan_view(
    plan: Plan,
    digest: str,
    origin: PlanOrigin,
    relative: Callable[[str], str],
    *,
    notices: Sequence[msgspec.Struct] = (),
    warnings: Sequence[str] = (),
) -> dict[str, Any]:
    """The envelope of a plan that was frozen and not published (akm facts 21.3).

    `relative` spells the paths of the read set. Commands, prompts and the values of literal
    environment bindings are left out.
    """
    view: dict[str, Any] = {
        "ok": True,
        "ref": origin.ref,
        "title": plan.title or plan.name,
        "sourceFormat": origin.format,
        "sourcePath": origin.path,
        "irVersion": plan.ir_version,
        "planHash": digest,
        "published": False,
        "execution": {"maxConcurrency": plan.limits.step_width or plan.limits.run_width},
        **_declared(plan),
        "steps": [_step(place, step) for place, step in enumerate(plan.steps)],
        "sourceReadSet": [{"path": relative(f.path), "hash": f.digest, "size": f.size} for f in plan.read_set],
        "notices": [msgspec.to_builtins(notice) for notice in notices],
        "warnings": list(warnings),
    }
    return {**view, "shape": "workflow-plan", "schemaVersion": 1}


def _declared(plan: Plan) -> dict[str, Any]:
    """Budget, params and outputs, each only where the workflow declares some."""
    shown: dict[str, Any] = {}
    budget = {"maxTokens": plan.budget.max_tokens, "maxUnits": plan.budget.max_units}
    if any(ceiling is not None for ceiling in budget.values()):
        shown["budget"] = {key: ceiling for key, ceiling in budget.items() if ceiling is not None}
    if plan.params:
        shown["params"] = [param.name for param in plan.params]
        shown["paramSchemas"] = {param.name: param.schema for param in plan.params if param.schema is not None}
    if plan.outputs:
        shown["outputs"] = {output.name: _output(output) for output in sorted(plan.outputs, key=lambda o: o.name)}
    return shown


def _output(output: Output) -> dict[str, Any]:
    source = getattr(output.value, "text", None) or getattr(output.value, "source", None)
    shown: dict[str, Any] = {"from": source}
    if output.has_schema:
        shown["schema"] = output.schema
    return shown


def _step(place: int, step: Step) -> dict[str, Any]:
    shown: dict[str, Any] = {"stepId": step.id, "sequenceIndex": place, "kind": step_kind(step)}
    unit = step.unit
    if unit is not None:
        shown["targetKind"] = target_kind(unit.spec)
        if (engine := engine_of(unit.spec)) is not None:
            shown["engine"] = engine
            shown["model"] = getattr(unit.spec, "model", None)
            shown["timeoutMs"] = unit.timeout_ms
    if step.needs:
        shown["needs"] = list(step.needs)
    match step.action:
        case FanOut() as action:
            shown["over"] = action.over.text
            shown["concurrency"] = action.width
            shown["reducer"] = action.reducer
        case Route() as action:
            shown["route"] = route_view(action)
        case _:
            pass
    child = unit.spec if unit is not None and isinstance(unit.spec, ChildSpec) else None
    shown["inputs"] = [reference.text for reference in step.inputs] if child is None else []
    shown["environment"] = [binding_view(b) for b in bindings_of(unit.spec)] if unit is not None else []
    shown["gate"] = _gate(step)
    if step.has_schema:
        shown["outputSchema"] = step.schema
    given: Expression | None = None if child is None else child.arguments
    if unit is not None and unit.given is not None:
        given = unit.given.values
    if given is not None and (bound := _bound(given)):
        shown["inputBindings"] = bound
    shown["expansion"] = _expansion(unit.task if unit is not None else None) if child is None else _composed(child)
    return shown


def _expansion(task: str | None) -> dict[str, Any]:
    return {"via": "direct"} if task is None else {"via": "task", "taskRef": task}


def _bound(given: Expression) -> list[dict[str, Any]]:
    """What a target is given, by name in order: values, and references that are resolved at dispatch."""
    assert isinstance(given, Record)
    found: list[dict[str, Any]] = []
    for name, value in given.fields:
        if isinstance(value, Reference):
            found.append({"kind": "reference", "name": name, "from": value.text})
        elif isinstance(value, Literal):
            found.append({"kind": "literal", "name": name, "value": value.value})
    return found


def _composed(child: ChildSpec) -> dict[str, Any]:
    """The whole child: what it exports, and its steps in the same form."""
    plan = msgspec.convert(child.plan, Plan, strict=True)
    shown: dict[str, Any] = {
        "via": "child",
        "childRef": child.ref,
        "childPlanHash": child.hash,
        "childVia": "direct" if child.task is None else "task",
    }
    if child.task is not None:
        shown["childTaskRef"] = child.task
    shown["childOutputs"] = list(exports_of(plan))
    return {**shown, "steps": [_step(place, step) for place, step in enumerate(plan.steps)]}


def _gate(step: Step) -> dict[str, Any]:
    gate = step.gate
    return {
        "criteria": [gate.rubric] if gate and gate.rubric else [],
        "maxLoops": gate.max_loops if gate else 1,
        "judgeEngine": engine_of(gate.judge) if gate else None,
    }


def route_view(route: Route) -> dict[str, Any]:
    """A route's value, branches by their match, and default where there is one."""
    shown: dict[str, Any] = {
        "input": route.value.text,
        "when": {branch.match: branch.step for branch in route.branches},
    }
    if route.default is not None:
        shown["default"] = route.default
    return shown
