"""The source of a task → compiled plan or diagnostics, so that a task is checked, shown and run as a workflow is."""

from __future__ import annotations

import os
from collections.abc import Callable

import msgspec

from flowstone.diagnostics import Report
from flowstone.formats.akm_task.lower import lower_task
from flowstone.formats.akm_task.parse import parse_task
from flowstone.formats.registry import AKM_TASK, Compiled
from flowstone.plan.model import Plan, SourceFile, Trigger
from flowstone.source.file import SourceText


def compile_task(path: str, source: SourceText, load: Callable[[str], SourceText]) -> Compiled:
    """Compile a task file to a plan of one step with the time tables as triggers."""
    report = Report()
    task = parse_task(source.text, report)
    plan: Plan | None = None
    if task is not None:
        name = os.path.basename(path).removesuffix(".yml")
        plan = lower_task(task, name, SourceFile(source.path, source.digest, source.size))
        triggers = tuple(Trigger(schedule.cron) for schedule in task.schedules)
        plan = msgspec.structs.replace(plan, triggers=(*triggers, *plan.triggers))
    return Compiled(plan, report.sorted(), AKM_TASK, f"sha256:{source.digest}")
