"""Tasks as data for people: what a run would do, with where each value comes from, and lists."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from flowstone.api.task_runs import Start, timeout_ms
from flowstone.api.tasks import TASKS, FoundTask
from flowstone.diagnostics import Report, errors_of
from flowstone.errors import InputError, SourceError

if TYPE_CHECKING:
    from flowstone.api import Flowstone
    from flowstone.formats.akm_task.document import Task
    from flowstone.formats.akm_task.inputs import Bound


def explain(flow: Flowstone, found: FoundTask, start: Start) -> dict[str, Any]:
    """What a run of a task would do, with where each value comes from; nothing is run or written."""
    from flowstone.formats.akm_task.flags import bind_flags

    task: Task = found.task
    bound = None
    problem = None
    try:
        bound = bind_flags(task.inputs, start.flags, "schedule-binding" if start.scheduled else "flag")
    except InputError as error:
        if start.flags:
            raise
        problem = error.message
    return {
        "ok": True,
        "ref": found.ref,
        "id": found.id,
        "path": found.path,
        "version": task.version,
        "name": task.name,
        "description": task.description,
        "target": _target(flow, task),
        "inputs": [_input_view(one, bound) for one in task.inputs],
        **({"inputProblem": problem} if problem is not None else {}),
        "schedules": [_schedule_view(task, schedule) for schedule in task.schedules],
        "enabled": found.ref in flow.wiring.activation.enabled(),
        "dispatch": {key: value for key, value in msgspec.to_builtins(task.dispatch).items() if value is not None},
        "timeoutMs": timeout_ms(task, scheduled=start.scheduled),
        "scheduledTimeoutMs": timeout_ms(task, scheduled=True),
        "maxSteps": task.max_steps,
        "maxRetries": task.max_retries,
        "redact": list(task.redact),
        "warnings": [diagnostic.message for diagnostic in found.warnings],
        "shape": "task-explain",
    }


def list_tasks(flow: Flowstone) -> list[dict[str, Any]]:
    """Every task of the bundles, by ref: what it is for, what it runs, when, and whether that holds here."""
    from flowstone.assets.bundles import canonical_ref, list_assets
    from flowstone.formats.akm_task.parse import parse_task

    bundles = flow.wiring.catalog.bundles
    enabled = flow.wiring.activation.enabled()
    rows = []
    for asset in list_assets(bundles, TASKS):
        ref = canonical_ref(asset, bundles)
        row: dict[str, Any] = {"ref": ref, "path": asset.path, "enabled": ref in enabled}
        report = Report()
        try:
            task = parse_task(flow.wiring.source(asset.path).text, report)
        except SourceError as error:
            task = None
            row["problem"] = error.message
        if task is not None:
            row |= {
                "name": task.name,
                "description": task.description,
                "target": task.target.uses or "run",
                "schedules": [schedule.cron for schedule in task.schedules],
            }
        elif "problem" not in row:
            row["problem"] = errors_of(report.sorted())[0].message
        rows.append(row)
    return rows


def _target(flow: Flowstone, task: Task) -> dict[str, Any]:
    target = task.target
    if target.run is not None:
        view: dict[str, Any] = {"kind": "run", "run": target.run, "shell": target.shell}
        if target.working_directory is not None:
            view["workingDirectory"] = target.working_directory
    else:
        view = {"kind": str(target.family), "uses": target.uses}
        if target.arguments is not None:
            view["with"] = target.arguments
    if target.env:
        view["env"] = dict.fromkeys(target.env, "<redacted>")
    return view


def _input_view(one: Any, bound: Bound | None) -> dict[str, Any]:
    view: dict[str, Any] = {"name": one.name, "schema": one.schema, "required": one.required}
    if bound is not None and one.name in bound.values:
        view |= _value_view(one.name, bound.values[one.name], bound.provenance[one.name])
    elif one.has_default:
        view |= _value_view(one.name, one.default, "default")
    return view


def _schedule_view(task: Task, schedule: Any) -> dict[str, Any]:
    from flowstone.formats.akm_task.inputs import bind

    bound = bind(task.inputs, schedule.inputs, "schedule-binding")
    inputs = {name: _value_view(name, value, bound.provenance[name]) for name, value in bound.values.items()}
    return {"cron": schedule.cron, "inputs": inputs}


def _value_view(name: str, value: Any, provenance: str) -> dict[str, Any]:
    """A value with its origin; one that looks like a credential is not shown."""
    from flowstone.formats.akm_common.credentials import scan

    return {"value": "<redacted>" if scan({name: value}) else value, "provenance": provenance}
