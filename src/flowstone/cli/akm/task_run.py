"""`akm task run|explain|history`: running a task, what a run would do, and what runs came to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click

from flowstone.cli import exit_codes
from flowstone.cli.common import output_options
from flowstone.cli.options import DeclaredFlag, FileFlags, GivenFlag
from flowstone.cli.render.formats import Format, Output, emit
from flowstone.cli.runs import SIGNALS
from flowstone.errors import FlowstoneError

if TYPE_CHECKING:
    from flowstone.api import Flowstone
    from flowstone.api.task_runs import TaskOutcome
    from flowstone.api.tasks import FoundTask
    from flowstone.ports.history import TaskRun

FINE = ("completed", "active", "disabled")


def declared_inputs(target: str) -> Sequence[DeclaredFlag] | None:
    """The inputs that a task declares; None where that cannot be told."""
    from flowstone.api import Flowstone
    from flowstone.api.tasks import find_task, flag_inputs

    try:
        with Flowstone() as flow:
            task = find_task(flow, target).task
    except FlowstoneError:
        return None
    return [DeclaredFlag(name, dict(schema), described) for name, schema, described in flag_inputs(task)]


@click.command(
    "run",
    cls=FileFlags,
    declare=declared_inputs,
    epilog="Examples: akm task run nightly --channel stable · akm task run tasks/nightly --format text",
)
@click.argument("target", metavar="TASK")
@click.option("--bundle", metavar="NAME", help="The bundle that the task is in.")
@click.option("--scheduled", is_flag=True, help="This is a start by a scheduler: nothing happens unless enabled here.")
@output_options()
def run(target: str, flags: tuple[GivenFlag, ...], bundle: str | None, scheduled: bool, output: Output) -> int:
    """Run TASK (an id, a ref or a file) to its end. Its inputs are flags behind it."""
    from flowstone.api.task_runs import Start, opened, run_task
    from flowstone.cli.akm.progress import progress_of
    from flowstone.cli.akm.runs import word_of

    with opened(target, bundle, scheduled=scheduled) as (flow, found):
        _warn(found, output)
        progress, lines = progress_of(output, word_of(flow))
        try:
            outcome = run_task(flow, found, Start(flags, scheduled, progress, lines))
        finally:
            progress.close()
        for text in outcome.warnings:
            output.warn(text)
        emit(_envelope(flow, outcome), output, {Format.TEXT: _text})
        return _exit_code(outcome)


@click.command(
    "explain",
    cls=FileFlags,
    declare=declared_inputs,
    epilog="Example: akm task explain tasks/nightly --channel stable",
)
@click.argument("target", metavar="TASK")
@click.option("--bundle", metavar="NAME", help="The bundle that the task is in.")
@click.option("--scheduled", is_flag=True, help="As a scheduler would start it.")
@output_options()
def explain(target: str, flags: tuple[GivenFlag, ...], bundle: str | None, scheduled: bool, output: Output) -> None:
    """Show what a run of TASK would do, and where each value comes from. Runs and writes nothing."""
    from flowstone.api.task_runs import Start, opened
    from flowstone.api.task_views import explain as explained

    with opened(target, bundle, scheduled=scheduled) as (flow, found):
        _warn(found, output)
        emit(explained(flow, found, Start(flags, scheduled)), output)


@click.command("history", epilog="Example: akm task history nightly --limit 5 --format text")
@click.argument("target", metavar="[TASK]", required=False)
@click.option("--bundle", metavar="NAME", help="The bundle that the task is in.")
@click.option("--limit", type=click.IntRange(min=1), metavar="N", help="The newest N only.")
@output_options()
def history(target: str | None, bundle: str | None, limit: int | None, output: Output) -> None:
    """Show what the runs of TASK (or of all tasks) came to, the newest first."""
    from flowstone.api import Flowstone
    from flowstone.api.tasks import history_ref, records

    with Flowstone() as flow:
        ref = None if target is None else history_ref(flow, target, bundle)
        rows = [_record(run) for run in records(flow, ref, limit)]
    emit({"ok": True, "runs": rows, "shape": "task-history"}, output, {Format.TEXT: _lines})


def _envelope(flow: Flowstone, outcome: TaskOutcome) -> dict[str, Any]:
    from flowstone.cli.akm.runs import word_of

    found, record = outcome.found, outcome.record
    view = {"ok": record.status in FINE, "id": found.id, **_record(record)}
    if outcome.report is not None:
        from flowstone.run.record import RunRow
        from flowstone.views.runs import run_object

        state = outcome.report.state
        row = RunRow(outcome.report.row.record, state.summary())
        view["run"] = run_object(row, word_of(flow), state.plan.ir_version)
        view["outputs"] = row.summary.outputs
    return {**view, "shape": "task-run", "schemaVersion": 1}


def _record(run: TaskRun) -> dict[str, Any]:
    from flowstone.views.moments import iso

    view = {
        "ref": run.ref,
        "status": run.status,
        "origin": run.origin,
        "runId": run.run_id,
        "startedAt": iso(run.started_at),
        "endedAt": iso(run.ended_at) if run.ended_at is not None else None,
        "durationMs": run.ended_at - run.started_at if run.ended_at is not None else None,
        "detail": run.detail,
    }
    return {key: value for key, value in view.items() if value is not None}


def _exit_code(outcome: TaskOutcome) -> int:
    if outcome.report is not None and outcome.report.end.cause in SIGNALS:
        return SIGNALS[outcome.report.end.cause]
    return exit_codes.OK if outcome.record.status in FINE else exit_codes.FAILED


def _warn(found: FoundTask, output: Output) -> None:
    for diagnostic in found.warnings:
        output.warn(f"{found.shown}:{diagnostic.place.line}: {diagnostic.message}")


def _text(view: Mapping[str, Any]) -> str:
    reason = view["detail"].get("reason")
    return f"{view['ref']}: {view['status']}" + (f" ({reason})" if reason else "")


def _lines(view: Mapping[str, Any]) -> str:
    rows = [
        f"{run['startedAt']}  {_text(run)}  {run['origin']}  {run.get('runId', '')}".rstrip() for run in view["runs"]
    ]
    return "\n".join(rows) or "No task has run yet."
