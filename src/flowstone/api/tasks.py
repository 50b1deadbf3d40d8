"""Tasks for programs and commands: find, validate, explain and run them, and tell what their runs came to."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import UNSET

from flowstone.api.texts import is_path
from flowstone.diagnostics import Diagnostic, Report, errors_of
from flowstone.errors import InputError, LeaseHeld, NotFound, SourceError, UnknownRun
from flowstone.ports.dialect import Given
from flowstone.ports.history import TaskRun

if TYPE_CHECKING:
    from flowstone.api import Flowstone
    from flowstone.drivers.drive import DriveReport
    from flowstone.formats.akm_task.document import Task
    from flowstone.formats.akm_task.inputs import Bound

TASKS = "tasks"
RUNNING = "running"
SOURCE = ("AKM_EVENT_SOURCE", "schedule")
"""The variable that tells of a start by a scheduler."""


class FoundTask(msgspec.Struct, frozen=True):
    """A task by its ref (or the path of a file outside the bundles); `shown` names the file for people."""

    ref: str
    shown: str
    path: str
    task: Any
    warnings: tuple[Diagnostic, ...]

    @property
    def id(self) -> str:
        return self.ref.rpartition("//")[2].removeprefix(f"{TASKS}/")


class Verdict(msgspec.Struct, frozen=True):
    """What a file is: valid, converts (version 2 or 3), blocked, invalid or not-a-task."""

    path: str
    outcome: str
    version: int | None
    diagnostics: tuple[Diagnostic, ...]

    @property
    def ok(self) -> bool:
        return self.outcome in ("valid", "converts")


class TaskOutcome(msgspec.Struct, frozen=True):
    """What a start of a task came to: its record, and the report of the drive where there was one."""

    found: Any
    record: TaskRun
    report: Any = None
    warnings: tuple[str, ...] = ()


class Start(msgspec.Struct, frozen=True):
    """How a task is started: the flags as typed, by whom, and what is told while it runs."""

    flags: tuple[tuple[str, str | None], ...] = ()
    scheduled: bool = False
    observer: Any = None
    lines: bool = False


@contextmanager
def opened(target: str, bundle: str | None = None, *, scheduled: bool = False) -> Iterator[tuple[Flowstone, FoundTask]]:
    """A task with the Flowstone that runs it: started by a scheduler, in the folder of its bundle."""
    from flowstone.api import Flowstone
    from flowstone.config.environment import variables

    env = {**variables(), SOURCE[0]: variables().get(*SOURCE)} if scheduled else None
    with Flowstone(env=env) as here:
        found = find_task(here, target, bundle)
        root = _root(here, found) if scheduled else None
        if root is None:
            yield here, found
            return
    with Flowstone(root, env) as there:
        yield there, found


def history_ref(flow: Flowstone, target: str, bundle: str | None = None) -> str:
    """The ref whose records are meant, also of a task that is gone."""
    try:
        return place_of(flow, target, bundle)[0]
    except NotFound:
        ref = task_ref(target, bundle)
        return ref if "//" in ref else f"{flow.wiring.settings.bundle.name}//{ref}"


def records(flow: Flowstone, ref: str | None = None, limit: int | None = None) -> list[TaskRun]:
    """The starts of a task (or of all), the newest first; one whose process died is told as interrupted."""
    return [_as_it_stands(flow, run) for run in flow.wiring.task_history.newest(ref, limit)]


def _as_it_stands(flow: Flowstone, run: TaskRun) -> TaskRun:
    if run.status != RUNNING or (run.run_id is not None and _is_driven(flow, run.run_id)):
        return run
    return msgspec.structs.replace(run, status="active", detail={**run.detail, "reason": "interrupted"})


def _is_driven(flow: Flowstone, run_id: str) -> bool:
    try:
        store, full = flow.wiring.store_of(run_id, readonly=True)
    except UnknownRun:
        return False
    return store.driver_of(full) is not None


def find_task(flow: Flowstone, target: str, bundle: str | None = None) -> FoundTask:
    """The task that an id, a ref or a path names; NotFound, or CompileError for an unsound one."""
    from flowstone.formats.akm_task.parse import read_task

    ref, path = place_of(flow, target, bundle)
    shown = os.path.relpath(path, flow.wiring.cwd)
    task, found = read_task(shown, flow.wiring.source(path))
    return FoundTask(ref, shown, path, task, found)


def place_of(flow: Flowstone, target: str, bundle: str | None = None) -> tuple[str, str]:
    """The canonical ref of a task and the path of its file."""
    if is_path(target):
        path = flow.wiring.place(target)
        return flow.wiring.catalog.ref_of(path) or os.path.realpath(path), path
    asset_ref = task_ref(target, bundle)
    try:
        asset = flow.wiring.catalog.find(asset_ref)
    except NotFound as error:
        if error.code != NotFound.code:
            raise
        raise NotFound(f"Task not found for ref: {target}", hint=error.hint) from None
    return asset.ref, asset.path


def task_ref(target: str, bundle: str | None = None) -> str:
    """`[bundle//]tasks/id` of an id or ref; InputError where both name a bundle and differ."""
    own, slashes, name = target.rpartition("//")
    name = name if name.startswith(f"{TASKS}/") else f"{TASKS}/{name}"
    if bundle is None:
        return f"{own}{slashes}{name}"
    if slashes and own != bundle:
        raise InputError(f"{target} names the bundle {own}, and --bundle {bundle}: give one of them.")
    return f"{bundle}//{name}"


def validate(flow: Flowstone, path: str) -> Verdict:
    """What a file is as a task; SourceError when it cannot be read."""
    from flowstone.formats.akm_task.parse import NOT_A_TASK, UNSUPPORTED, parse_task

    source = flow.wiring.source(flow.wiring.place(path))
    report = Report()
    task = parse_task(source.text, report)
    found = report.sorted()
    codes = {diagnostic.code for diagnostic in errors_of(found)}
    if task is not None:
        outcome = "valid" if task.version == 4 else "converts"
    elif NOT_A_TASK in codes:
        outcome = NOT_A_TASK
    else:
        outcome = "blocked" if UNSUPPORTED in codes else "invalid"
    return Verdict(path, outcome, None if task is None else task.version, found)


def run_task(flow: Flowstone, found: FoundTask, start: Start) -> TaskOutcome:
    """Run a task to where it gets, and keep a record of it. A scheduled start of a disabled one does nothing."""
    from flowstone.formats.akm_task.flags import bind_flags

    task: Task = found.task
    bound = bind_flags(task.inputs, start.flags, "schedule-binding" if start.scheduled else "flag")
    clock, history = flow.wiring.clock, flow.wiring.task_history
    origin = "schedule" if start.scheduled else "manual"
    record = TaskRun(found.ref, clock.now_ms(), RUNNING, origin)
    if start.scheduled and (idle := _idle(flow, found)) is not None:
        record = msgspec.structs.replace(record, ended_at=record.started_at, status=idle[0], detail={"reason": idle[1]})
        history.begin(record)
        return TaskOutcome(found, record)
    started, given = _started(flow, found, bound)
    record = msgspec.structs.replace(record, run_id=started.run_id)
    number = history.begin(record)
    try:
        report = flow.drive(
            started.run_id, given, options=_options(flow, task, start), observer=start.observer, lines=start.lines
        )
    except BaseException as error:
        history.update(number, _ended(record, clock.now_ms(), "failed", str(error) or type(error).__name__))
        raise
    status, reason = _status(report)
    record = _ended(record, clock.now_ms(), status, reason)
    history.update(number, record)
    return TaskOutcome(found, record, report, started.warnings)


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
        "timeoutMs": _timeout_ms(task, scheduled=start.scheduled),
        "scheduledTimeoutMs": _timeout_ms(task, scheduled=True),
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


def _root(flow: Flowstone, found: FoundTask) -> str | None:
    """The folder of the bundle that a task lies in."""
    name = found.ref.rpartition("//")[0]
    roots = (one.root for one in flow.wiring.catalog.bundles if one.name == name)
    return next((os.path.realpath(root) for root in roots), None)


def _idle(flow: Flowstone, found: FoundTask) -> tuple[str, str] | None:
    """Why a scheduled start does nothing: (status, reason)."""
    if found.ref not in flow.wiring.activation.enabled():
        return "disabled", "not-enabled"
    for earlier in flow.wiring.task_history.newest(found.ref, 5):
        if earlier.status == RUNNING and earlier.run_id is not None and _is_driven(flow, earlier.run_id):
            return "active", "earlier-run-goes-on"
    return None


def _started(flow: Flowstone, found: FoundTask, bound: Bound) -> tuple[Any, Given]:
    """A new run: of the workflow that the task names, which gets the values, or of the task's own target."""
    from flowstone.formats.akm_common.targets import Family

    task: Task = found.task
    scrubbed = {name: flow.wiring.env[name] for name in task.redact if flow.wiring.env.get(name)}
    connections = {"redact": scrubbed} if scrubbed else {}
    if task.target.family is not Family.WORKFLOW:
        given = Given(connections=connections)
        return flow.start(found.path, given), given
    given = Given(values=bound.values, connections=connections)
    try:
        return flow.start(str(task.target.uses), given), given
    except LeaseHeld:
        raise
    except InputError as error:
        message = f"{found.ref}: {task.target.uses} does not take these inputs: {error.message}"
        raise InputError(message, code="INPUT_BINDING_INVALID", hint=error.hint) from None


def _options(flow: Flowstone, task: Task, start: Start) -> Any:
    """Bounds of the drive. The time limit of a task that runs no workflow is its unit's own."""
    from flowstone.formats.akm_common.targets import Family

    limit = _timeout_ms(task, scheduled=start.scheduled) if task.target.family is Family.WORKFLOW else None
    return flow.drive_options(max_steps=task.max_steps, max_retries=task.max_retries or 0, timeout_ms=limit)


def _timeout_ms(task: Task, *, scheduled: bool) -> int | None:
    from flowstone.formats.akm_common.targets import Family
    from flowstone.formats.akm_task.grammar import SCHEDULED_TIMEOUT_MS

    if task.timeout_ms is not UNSET:
        return task.timeout_ms
    return SCHEDULED_TIMEOUT_MS if scheduled and task.target.family is Family.WORKFLOW else None


def _status(report: DriveReport) -> tuple[str, str | None]:
    """The task's own word for how a drive ended, and the reason where it is no plain success."""
    cause = report.end.cause
    if cause == "timeout":
        return "failed", "timeout"
    if cause is not None:
        return "active", "aborted"
    if report.end.halt == "rejected":
        return "blocked", "gate-rejected"
    if report.end.halt == "refused":
        return "failed", "outputs-refused"
    words = {"succeeded": "completed", "held": "blocked", "failed": "failed", "abandoned": "failed"}
    status = words.get(str(report.state.status), "active")
    return status, None if status in ("completed", "active") else _reason(report)


def _reason(report: DriveReport) -> str | None:
    """The reason of the unit that failed last."""
    from flowstone.views.units import unit_rows

    reasons = [row.get("failureReason") for row in unit_rows(report.state, str, report.row.summary.updated_at)]
    return next((str(reason) for reason in reversed(reasons) if reason is not None), None)


def _ended(record: TaskRun, now: int, status: str, reason: str | None) -> TaskRun:
    detail = {} if reason is None else {"reason": reason}
    return msgspec.structs.replace(record, ended_at=now, status=status, detail=detail)


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


def flag_inputs(task: Task) -> Sequence[tuple[str, Mapping[str, Any], str | None]]:
    """The declared inputs as (name, schema with default, description), for help and completion."""
    from flowstone.formats.akm_task.inputs import as_schema

    return [(one.name, as_schema(one), one.described) for one in task.inputs]
