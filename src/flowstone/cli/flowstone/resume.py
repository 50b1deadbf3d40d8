"""`flowstone resume [RUN]`: reopen a run that stopped and drive it on."""

from __future__ import annotations

import sys
from typing import Any

import click

from flowstone.cli.errors import Exit
from flowstone.cli.flowstone.choice import run_choice
from flowstone.cli.flowstone.driving import drive_and_tell, drive_options
from flowstone.cli.render.terminal import say
from flowstone.cli.runs import chosen_run, given_of


@click.command("resume", epilog="Example: flowstone resume --last")
@run_choice
@click.option("--set", "sets", multiple=True, metavar="NAME=VALUE", help="Give a secret parameter again.")
@click.option("--from", "from_step", metavar="STEP", help="Run STEP and all that follows from it afresh.")
@click.option("--only", "only_step", metavar="STEP", help="Run STEP alone afresh; what follows from it stands.")
@drive_options
def command(
    run: str | None,
    last: bool,
    sets: tuple[str, ...],
    connections: tuple[str, ...],
    quiet: bool,
    **options: Any,
) -> None:
    """Go on with a run that failed, was held or was interrupted. Without RUN it is the newest one of this folder.

    What succeeded before is not run again, unless --from or --only asks for it: then a run that
    has succeeded can be taken up too.
    """
    from flowstone.api import Flowstone

    given = given_of(sets, connections)
    with Flowstone() as flow:
        run_id = chosen_run(flow, run, last)
        if flow.check_source(run_id) and not quiet:
            say("note: the source has changed since the run began; it goes on with its frozen plan\n", sys.stderr)
        raise Exit(drive_and_tell(flow, run_id, given, reopen=True, quiet=quiet, **options))
