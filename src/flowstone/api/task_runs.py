"""Running a task: by a person or a scheduler, to where it gets, with a record of what came of it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import UNSET

from flowstone.api.tasks import RUNNING, SOURCE, FoundTask, find_task, history_ref, is_driven
from flowstone.errors import FlowstoneError, InputError, LeaseHeld, UsageError
from flowstone.ports.dialect import Given
from flowstone.ports.history import TaskRun

if TYPE_CHECKING:
    from flowstone.api import Flowstone
    from flowstone.drivers.drive import DriveReport
    from flowstone.formats.akm_task.document import Task


class Start(msgspec.Struct, frozen=True):
    """How a task is started: the flags as typed, by whom, and what is told while it runs."""

    flags: tuple[tuple[str, str | None], ...] = ()
    scheduled: bool = False
    observer: Any = None
    lines: bool = False


class TaskOutcome(msgspec.Struct, frozen=True):
    """What a start of a task came to: its record, and the report of the drive where there was one."""

    found: Any
    record: TaskRun
    report: Any = None
    warnings: tuple[str, ...] = ()


@contextmanager
def opened(target: str, bundle: str | None = None, *, scheduled: bool = False) -> Iterator[tuple[Flowstone, FoundTask]]:
    """A task with the Flowstone that runs it: started by a scheduler, in the folder of its bundle."""
    from flowstone.api import Flowstone
    from flowstone.config.environment import variables

    env = {**variables(), SOURCE[0]: variables().get(*SOURCE)} if scheduled else None
    with Flowstone(env=env) as here:
        try:
            found = find_task(here, target, bundle)
        except FlowstoneError as error:
            if scheduled:
                _note_refusal(here, history_ref(here, target, bundle), error)
            raise
        root = _root(here, found) if scheduled else None
        if root is None:
            yield here, found
            return
    with Flowstone(root, env) as there:
        yield there, found


def run_task(flow: Flowstone, found: FoundTask, start: Start) -> TaskOutcome:
    """Run a task to where it gets, and keep a record of it. A scheduled start of a disabled one does nothing."""
    task: Task = found.task
    clock, history = flow.wiring.clock, flow.wiring.task_history
    record = TaskRun(found.ref, clock.now_ms(), RUNNING, "schedule" if start.scheduled else "manual")
    if start.scheduled and (idle := _idle(flow, found)) is not None:
        record = msgspec.structs.replace(record, ended_at=record.started_at, status=idle[0], detail={"reason": idle[1]})
        history.begin(record)
        return TaskOutcome(found, record)
    try:
        started, given = _started(flow, found, start)
    except FlowstoneError as error:
        if start.scheduled or not isinstance(error, UsageError):
            history.begin(_refused(record, clock.now_ms(), error))
        raise
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


def _idle(flow: Flowstone, found: FoundTask) -> tuple[str, str] | None:
    """Why a scheduled start does nothing: (status, reason)."""
    if found.ref not in flow.wiring.activation.enabled():
        return "disabled", "not-enabled"
    for earlier in flow.wiring.task_history.newest(found.ref, 5):
        if earlier.status == RUNNING and earlier.run_id is not None and is_driven(flow, earlier.run_id):
            return "active", "earlier-run-goes-on"
    return None


def _root(flow: Flowstone, found: FoundTask) -> str | None:
    """The folder of the bundle that a task lies in."""
    name = found.ref.rpartition("//")[0]
    roots = (one.root for one in flow.wiring.catalog.bundles if one.name == name)
    return next((os.path.realpath(root) for root in roots), None)


def _started(flow: Flowstone, found: FoundTask, start: Start) -> tuple[Any, Given]:
    """A new run: of the workflow that the task names, which gets the values, or of the task's own target."""
    from flowstone.formats.akm_common.targets import Family
    from flowstone.formats.akm_task.flags import bind_flags

    task: Task = found.task
    bound = bind_flags(task.inputs, start.flags, "schedule-binding" if start.scheduled else "flag")
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


def _refused(record: TaskRun, now: int, error: FlowstoneError) -> TaskRun:
    """The record of a start that led to no run."""
    ended = _ended(record, now, "failed", error.code)
    return msgspec.structs.replace(ended, detail={**ended.detail, "message": error.message})


def _note_refusal(flow: Flowstone, ref: str, error: FlowstoneError) -> None:
    """A scheduled start of a task that cannot be read is told by its history: nobody saw the error."""
    now = flow.wiring.clock.now_ms()
    flow.wiring.task_history.begin(_refused(TaskRun(ref, now, RUNNING, "schedule"), now, error))


def _options(flow: Flowstone, task: Task, start: Start) -> Any:
    """Bounds of the drive. The time limit of a task that runs no workflow is its unit's own."""
    from flowstone.formats.akm_common.targets import Family

    limit = timeout_ms(task, scheduled=start.scheduled) if task.target.family is Family.WORKFLOW else None
    return flow.drive_options(max_steps=task.max_steps, max_retries=task.max_retries or 0, timeout_ms=limit)


def timeout_ms(task: Task, *, scheduled: bool) -> int | None:
    """The time limit of a task in milliseconds, None for none."""
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
