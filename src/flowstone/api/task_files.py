"""Writing task files: what `akm task add` asks for, checked before anything is written."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from flowstone.diagnostics import Report, errors_of
from flowstone.errors import CompileError, InputError, UsageError

if TYPE_CHECKING:
    from flowstone.api import Flowstone
    from flowstone.formats.akm_task.write import NewTask


def new_task(fields: dict[str, Any]) -> NewTask:
    """A new task of the fields of `NewTask`."""
    from flowstone.formats.akm_task.write import NewTask

    return NewTask(**fields)


def add_task(
    flow: Flowstone, name: str, new: NewTask, *, bundle: str | None = None, replace: bool = False
) -> tuple[str, str]:
    """Write a new task; returns its ref and path. UsageError for an existing one, unless it may be replaced."""
    from flowstone.api.tasks import task_ref
    from flowstone.assets.bundles import contained
    from flowstone.assets.refs import parse_ref
    from flowstone.formats.akm_task.parse import error_code, parse_task
    from flowstone.formats.akm_task.write import task_text
    from flowstone.schedule.unit_files import write_file

    ref = parse_ref(task_ref(name.removesuffix(".yml"), bundle))
    bundles = {one.name: one.root for one in flow.wiring.settings.bundles}
    owner = ref.bundle or flow.wiring.settings.bundle.name
    if owner not in bundles:
        raise InputError(f'There is no bundle "{owner}".', hint=f"Configured: {', '.join(bundles)}.")
    path = os.path.join(bundles[owner], "tasks", *ref.name.split("/")) + ".yml"
    text = task_text(new)
    report = Report()
    if parse_task(text, report) is None:
        found = report.sorted()
        raise CompileError(os.path.relpath(path, flow.wiring.cwd), errors_of(found), code=error_code(found))
    if os.path.lexists(path) and not replace:
        message = f'Task "{ref.name}" already exists. Re-run with --force to overwrite it.'
        raise UsageError(message, code="RESOURCE_ALREADY_EXISTS")
    if not contained(bundles[owner], os.path.dirname(path)):
        raise UsageError(f"{path} lies outside its bundle.", code="PATH_ESCAPE_VIOLATION")
    write_file(path, text)
    return f"{owner}//tasks/{ref.name}", path
