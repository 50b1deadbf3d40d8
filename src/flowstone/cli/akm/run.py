"""`akm workflow run`: start a workflow, or go on with a run, and drive it as far as it gets."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from flowstone.cli import exit_codes
from flowstone.cli.akm.runs import DIALECT, RUN_ID, SOURCE_CHANGED, refuse_foreign, run_id_of, unknown, word_of
from flowstone.cli.common import output_options
from flowstone.cli.options import DeclaredFlag, FileFlags, GivenFlag
from flowstone.cli.render.formats import Output, emit
from flowstone.cli.runs import SIGNALS, keep_what_is_there
from flowstone.errors import FlowstoneError, IllegalTransition, LeaseHeld, UnknownRun, UsageError

if TYPE_CHECKING:
    from flowstone.api import Flowstone, Started
    from flowstone.drivers.drive import DriveOptions, DriveReport
    from flowstone.ports.dialect import Given
    from flowstone.run.record import RunRow


def declared_flags(target: str) -> Sequence[DeclaredFlag] | None:
    """The params that the workflow behind a target declares; None where that cannot be told."""
    from flowstone.api import Flowstone

    if RUN_ID.fullmatch(target):
        return None
    try:
        with Flowstone() as flow:
            plan = flow.compile(target).compiled.plan
    except FlowstoneError:
        return None
    return None if plan is None else [DeclaredFlag(p.name, p.schema, p.description) for p in plan.params]


@click.command(
    "run",
    cls=FileFlags,
    declare=declared_flags,
    epilog="Examples: akm workflow run workflows/release --version 1.2 · akm workflow run ./flow.md --timeout 30m"
    " · akm workflow run 0199f2c4",
)
@click.argument("target")
@click.option("--max-steps", type=click.IntRange(min=1), metavar="N", help="Stop after N finished steps.")
@click.option("--max-retries", type=click.IntRange(0, 100), default=0, metavar="N", help="Retry a failed step N times.")
@click.option("--timeout", metavar="TIME", help="Stop after this time (90s, 10m, none); the run stays active.")
@click.option("--new", is_flag=True, help="Start another run although one is active.")
@click.option("--skip-if-locked", is_flag=True, help="Do nothing when another process drives the run.")
@output_options()
def command(
    target: str,
    flags: tuple[GivenFlag, ...],
    output: Output,
    new: bool,
    skip_if_locked: bool,
    max_steps: int | None,
    max_retries: int,
    timeout: str | None,
) -> int:
    """Start the workflow TARGET (a ref or a file), or go on with the run TARGET, to its end.

    Parameters of the workflow are flags behind TARGET; `run TARGET --help` lists them.
    """
    from flowstone.api import Flowstone, Given, timeout_of

    limit = None if timeout is None else timeout_of(timeout)
    with Flowstone() as flow:
        options = flow.drive_options(max_steps=max_steps, max_retries=max_retries, timeout_ms=limit)
        try:
            return _run(flow, target, Given(texts=flags), options, output, new)
        except FlowstoneError as error:
            if not skip_if_locked or (reason := _contention(error)) is None:
                raise
            from flowstone.views.envelope import skipped_envelope

            emit(skipped_envelope(reason, error.message), output)
            return exit_codes.OK


def _contention(error: FlowstoneError) -> str | None:
    """What another process holds, in the words of `--skip-if-locked`; None for other errors."""
    if isinstance(error, LeaseHeld):
        return "lock-held"
    return "state-db-contended" if error.code == "STATE_DB_CONTENDED" else None


def _run(flow: Flowstone, target: str, given: Given, options: DriveOptions, output: Output, new: bool) -> int:
    from flowstone.cli.akm.progress import progress_of
    from flowstone.cli.akm.text import writers
    from flowstone.views.envelope import run_envelope

    started = _started(flow, target, given, new)
    warnings = [*started.warnings, *_changed(flow, started)]
    for text in warnings:
        output.warn(text)
    progress, lines = progress_of(output, word_of(flow))
    try:
        keep_what_is_there()
        report = flow.drive(started.run_id, given, options=options, observer=progress, lines=lines)
    finally:
        progress.close()
    if report.end.halt == "refused":
        raise UsageError(
            report.end.problem or "The outputs cannot be resolved.",
            code="WORKFLOW_OUTPUT_INVALID",
            hint=f"The run {started.run_id} stays active: mend the step that makes the value, then run it again.",
        )
    word, now = word_of(flow), flow.wiring.clock.now_ms()
    view = run_envelope(
        report.row.record,
        report.state,
        report.executed,
        word,
        now,
        cause=report.end.cause,
        resumed=started.resumed,
        warnings=[*warnings, *report.warnings],
    )
    emit(view, output, writers(report.row, report.state, word, now))
    return _exit_code(report)


def _started(flow: Flowstone, target: str, given: Given, new: bool) -> Started:
    """The run that a target means: a new one, the active one of its workflow, or the one it names."""
    from flowstone.api import Started

    if not RUN_ID.fullmatch(target):
        refuse_foreign(flow, target)
        return flow.start(target, given, new=new)
    run_id = run_id_of(flow, target)
    if given.texts:
        raise IllegalTransition(
            f"Workflow parameter flags can only be set on a new run; {run_id} exists already.",
            code="INVALID_FLAG_VALUE",
            hint="Run it without flags, or start a new run of its workflow.",
        )
    _refuse_stopped(flow, run_id)
    return Started(run_id, resumed=True)


def _refuse_stopped(flow: Flowstone, run_id: str) -> None:
    row = _row(flow, run_id)
    word = flow.dialect(row.record.dialect).word(row.summary.status)
    if row.summary.status not in ("active", "succeeded"):
        raise IllegalTransition(
            f"Workflow run {run_id} is {word} and cannot be executed.",
            code="RUN_NOT_ACTIVE",
            hint=f"Use `akm workflow resume {run_id}` to reopen it first.",
        )


def _changed(flow: Flowstone, started: Started) -> tuple[str, ...]:
    if not started.resumed:
        return ()
    row = _row(flow, started.run_id)
    return (SOURCE_CHANGED,) if row.summary.status == "active" and flow.source_changed(row) else ()


def _row(flow: Flowstone, run_id: str) -> RunRow:
    try:
        return flow.wiring.store_for(DIALECT).load(run_id)
    except UnknownRun:
        raise unknown(run_id) from None


def _exit_code(report: DriveReport) -> int:
    if report.end.cause is not None:
        return SIGNALS.get(report.end.cause, exit_codes.FAILED)
    if report.end.halt == "rejected":
        return exit_codes.FAILED
    return exit_codes.OK if report.state.status in ("active", "succeeded") else exit_codes.FAILED
