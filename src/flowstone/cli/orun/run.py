"""`orun workflow run FILE`: run a file, or with `--resume` go on with a run of it (orun facts 2)."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from flowstone.cli.declared import TakesFile
from flowstone.cli.errors import Exit
from flowstone.cli.orun.files import LANGUAGE
from flowstone.cli.render.terminal import neutral, say
from flowstone.cli.runs import ended_with, given_of, keep_what_is_there
from flowstone.errors import InputError

if TYPE_CHECKING:
    from flowstone.api import Flowstone, Given
    from flowstone.drivers.drive import DriveReport


class RunsFile(TakesFile):
    language = LANGUAGE


@click.command("run", cls=RunsFile, epilog="Example: orun workflow run release.yaml --set version=1.2")
@click.argument("file")
@click.option("--set", "sets", multiple=True, metavar="KEY=VALUE", help="Give an input; repeatable, the last wins.")
@click.option("--connection", "connections", multiple=True, metavar="NAME.FIELD=VALUE", help="Grant a connection.")
@click.option("--resume", metavar="EXEC", help="Go on with a run of this file.")
@click.option("--max-parallel", type=click.IntRange(min=1), help="Steps at a time, where the file does not say.")
@click.option("--frozen", is_flag=True, help="Refuse a remote file that nothing pins.")
def command(
    file: str,
    sets: tuple[str, ...],
    connections: tuple[str, ...],
    resume: str | None,
    max_parallel: int | None,
    frozen: bool,
) -> None:
    """Run the workflow FILE and print what its steps print.

    FILE may be remote: github:owner/repo[@ref]//path, or an address that begins with https://.
    """
    from flowstone.api import Flowstone

    given = given_of(sets, connections)
    with Flowstone(language=LANGUAGE) as flow:
        flow.wiring.frozen = frozen
        flow.wiring.on_fetch = lambda text: say(f"{neutral(text)}\n")
        run_id = flow.start(file, given).run_id if resume is None else _taken_up(flow, file, resume)
        report = drive(flow, run_id, given, max_parallel, reopen=resume is not None)
    raise Exit(tell_end(file, report))


def _taken_up(flow: Flowstone, file: str, run_id: str) -> str:
    """The run to resume; refused unless the file is the one that it started with."""
    if "/" in run_id or "\\" in run_id or run_id in ("", ".", ".."):
        raise InputError(f'resume "{run_id}": invalid exec id')
    flow.sound(file)
    flow.check_source(run_id, file)
    return run_id


def drive(flow: Flowstone, run_id: str, given: Given, max_parallel: int | None, *, reopen: bool) -> DriveReport:
    """Drive a run with the progress that orun documents; a run that succeeded stays as it is."""
    from flowstone.cli.render.lines import OrunLines

    observer = OrunLines(sys.stdout, flow.dialect(LANGUAGE).word)
    options = flow.drive_options(max_parallel=max_parallel)
    reopen = reopen and flow.status(run_id).state.status != "succeeded"
    keep_what_is_there()
    try:
        return flow.drive(run_id, given, options=options, observer=observer, reopen=reopen, lines=True)
    finally:
        observer.close()


def tell_end(file: str, report: DriveReport, noun: str = "workflow") -> int:
    """Print how a run ended; returns the exit code."""
    from flowstone.views.progress import orun_end

    state = report.state
    word = {"active": "interrupted"}
    say("".join(f"{neutral(line)}\n" for line in orun_end(file, state, lambda status: word.get(status, status), noun)))
    if report.end.halt == "interrupted":
        say(f"✕ {noun} interrupted (--resume {state.run_id} goes on with it)\n", sys.stderr)
    elif state.status != "succeeded":
        if state.error and not any(step.error == state.error for step in state.order):
            say(f"✕ {neutral(state.error)}\n", sys.stderr)
        say(f"✕ {noun} failed\n", sys.stderr)
    return ended_with(report)
