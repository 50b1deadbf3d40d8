"""`flowstone run FILE`: start a new run of a workflow and drive it as far as it gets."""

from __future__ import annotations

import sys
from typing import Any

import click

from flowstone.cli.declared import TakesFile, with_declared_names
from flowstone.cli.errors import Exit
from flowstone.cli.flowstone.confirming import confirm_reuse
from flowstone.cli.flowstone.driving import drive_and_tell, drive_options
from flowstone.cli.flowstone.sources import compile_errors_shown
from flowstone.cli.render.terminal import neutral, say
from flowstone.cli.runs import given_of
from flowstone.errors import InputError, UsageError


@click.command("run", cls=TakesFile, epilog="Example: flowstone run release.md --set version=1.2 --timeout 10m")
@click.argument("file", metavar="FILE|REF")
@click.option("--set", "sets", multiple=True, metavar="NAME=VALUE", help="Give a parameter; repeatable.")
@click.option("--frozen", is_flag=True, help="Refuse a remote file that nothing pins.")
@click.option("--reuse", metavar="RUN", help="Take over what an earlier run did that is unchanged since.")
@click.option("-y", "--yes", is_flag=True, help="Do not ask before taking over.")
@click.option("--cancel-older", is_flag=True, help="Give up the runs before this one under its limit.")
@drive_options
def command(
    file: str,
    sets: tuple[str, ...],
    connections: tuple[str, ...],
    frozen: bool,
    reuse: str | None,
    yes: bool,
    cancel_older: bool,
    quiet: bool,
    **options: Any,
) -> None:
    """Run the workflow FILE (or REF). Ends with 0 only if the run succeeded.

    FILE may be a remote orun workflow: github:owner/repo[@ref]//path, or an https:// address.

    What is done is kept: `flowstone resume --last` goes on with a run that stopped.
    """
    from flowstone.api import Flowstone

    given = given_of(sets, connections)
    with Flowstone() as flow:
        flow.wiring.frozen = frozen
        if not quiet:
            flow.wiring.on_fetch = lambda text: say(f"{neutral(text)}\n", sys.stderr)
        with compile_errors_shown(flow):
            try:
                if reuse is not None:
                    confirm_reuse(flow.reuse_list(file, reuse, given), reuse, yes=yes, quiet=quiet)
                started = flow.start(file, given, reuse=reuse)
            except UsageError as error:
                if isinstance(error, InputError) or error.code == "UNKNOWN_FLAG":
                    raise with_declared_names(flow, file, given, error) from None
                raise
        if not quiet:
            for text in started.warnings:
                say(f"warning: {neutral(text)}\n", sys.stderr)
        raise Exit(
            drive_and_tell(flow, started.run_id, given, reopen=False, quiet=quiet, cancel_older=cancel_older, **options)
        )
