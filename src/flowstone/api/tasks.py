"""Tasks by id, ref or path: finding and validating them, and what their starts came to."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from flowstone.api.texts import is_path
from flowstone.diagnostics import Diagnostic, Report, errors_of
from flowstone.errors import InputError, NotFound, UnknownRun
from flowstone.ports.history import TaskRun

if TYPE_CHECKING:
    from flowstone.api import Flowstone
    from flowstone.formats.akm_task.document import Task

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
    if run.status != RUNNING or (run.run_id is not None and is_driven(flow, run.run_id)):
        return run
    return msgspec.structs.replace(run, status="active", detail={**run.detail, "reason": "interrupted"})


def is_driven(flow: Flowstone, run_id: str) -> bool:
    """Whether a process drives a run now."""
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


def flag_inputs(task: Task) -> Sequence[tuple[str, Mapping[str, Any], str | None]]:
    """The declared inputs as (name, schema with default, description), for help and completion."""
    from flowstone.formats.akm_task.inputs import as_schema

    return [(one.name, as_schema(one), one.described) for one in task.inputs]
