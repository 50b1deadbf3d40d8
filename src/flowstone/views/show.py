"""The show view: a workflow's source as people read it, with what each step will do."""

from __future__ import annotations

from typing import Any

import msgspec

from flowstone.plan.model import FanOut, Plan, Reducer, Route, Step, Unit
from flowstone.plan.units import AssetTarget, ChildSpec, EnvRef, ExecSpec, PassEnv, PromptTarget
from flowstone.run.record import RunRow
from flowstone.views.moments import iso
from flowstone.views.plan import route_view
from flowstone.views.specs import bindings_of, spelt
from flowstone.views.status import step_header
from flowstone.views.words import Word


class Shown(msgspec.Struct, frozen=True):
    """The asset that is shown: its canonical ref, its bundle (None for a plain file) and its path."""

    ref: str
    name: str
    origin: str | None
    path: str
    editable: bool


def show_view(plan: Plan, asset: Shown, active: RunRow | None, word: Word) -> dict[str, Any]:
    """A workflow asset (akm facts 21.3). `active` is the active run of this very workflow."""
    view: dict[str, Any] = {
        "type": "workflow",
        "name": asset.name,
        "ref": asset.ref,
        "origin": asset.origin,
        "action": f"akm workflow run {asset.ref}",
        "description": plan.description,
        "content": plan.preamble or "",
        "parameters": [param.name for param in plan.params],
        "workflowTitle": plan.title or plan.name,
        "workflowParameters": [
            _param(p.name, p.description or (p.schema or {}).get("description")) for p in plan.params
        ],
        "steps": [_step(place, step) for place, step in enumerate(plan.steps)],
    }
    if active is not None:
        view["activeRun"] = _active(active, word)
    return {**view, "related": [], "path": asset.path, "editable": asset.editable, "schemaVersion": 1}


def _param(name: str, description: str | None) -> dict[str, Any]:
    return {"name": name} if description is None else {"name": name, "description": description}


def _active(row: RunRow, word: Word) -> dict[str, Any]:
    return {
        "runId": row.record.id,
        "status": word(row.summary.status),
        "stepId": row.summary.current_step,
        "createdAt": iso(row.record.created_at),
        "updatedAt": iso(row.summary.updated_at or row.record.created_at),
    }


def _step(place: int, step: Step) -> dict[str, Any]:
    shown = step_header(place, step)
    orchestration = _orchestration(step)
    if orchestration:
        shown["orchestration"] = orchestration
    return shown


def _orchestration(step: Step) -> dict[str, Any]:
    """What is declared about a step's execution: the presence of a field tells its kind."""
    action = step.action
    if isinstance(action, Route):
        return {"route": route_view(action)}
    shown = _unit(action.unit)
    if isinstance(action, FanOut):
        shown["fanOut"] = _fan_out(action)
    if step.has_schema or action.unit.has_schema:
        shown["hasSchema"] = True
    return shown


def _fan_out(action: FanOut) -> dict[str, Any]:
    shown: dict[str, Any] = {"over": action.over.text, "reducer": Reducer(action.reducer)}
    if action.width is not None:
        shown["concurrency"] = action.width
    return shown


def _unit(unit: Unit) -> dict[str, Any]:
    shown: dict[str, Any] = {}
    spec = unit.spec
    if isinstance(spec, PromptTarget):
        shown.update((k, v) for k, v in (("engine", spec.engine), ("model", spec.model)) if v is not None)
    if unit.timeout_set:
        shown["timeoutMs"] = unit.timeout_ms
    if isinstance(spec, ExecSpec):
        shown["exec"] = _exec(spec)
    elif isinstance(spec, (AssetTarget, ChildSpec)):
        shown["uses"] = spec.ref
    bound = [b.ref if isinstance(b, EnvRef) else b.name for b in bindings_of(spec) if not isinstance(b, PassEnv)]
    if bound:
        shown["env"] = bound
    if unit.isolation != "none":
        shown["isolation"] = unit.isolation
    return shown


def _exec(spec: ExecSpec) -> dict[str, Any]:
    """The argv in full: what is shown is what runs."""
    shown: dict[str, Any] = {"command": [spelt(word) for word in spec.argv]}
    if spec.cwd is not None:
        shown["cwd"] = spelt(spec.cwd)
    passed = [binding.name for binding in spec.env if isinstance(binding, PassEnv)]
    if passed:
        shown["passEnv"] = passed
    return shown
