"""`flowstone run FILE`: start a new run of a workflow and drive it as far as it gets."""

from __future__ import annotations

import sys
from typing import Any

import click

from flowstone.cli.declared import TakesFile, with_declared_names
from flowstone.cli.errors import Exit
from flowstone.cli.flowstone.driving import drive_and_tell, drive_options
from flowstone.cli.flowstone.sources import compile_errors_shown
from flowstone.cli.render.terminal import neutral, say
from flowstone.cli.runs import given_of
from flowstone.errors import InputError, UsageError


@click.command("run", cls=TakesFile, epilog="Example: flowstone run release.md --set version=1.2 --timeout 10m")
@click.argument("file", metavar="FILE|REF")
@click.option("--set", "sets", multiple=True, metavar="NAME=VALUE", help="Give a parameter; repeatable.")
@drive_options
def command(file: str, sets: tuple[str, ...], connections: tuple[str, ...], quiet: bool, **options: Any) -> None:
    """Run the workflow FILE (or REF). Ends with 0 only if the run succeeded.

    What is done is kept: `flowstone resume --last` goes on with a run that stopped.
    """
    from flowstone.api import Flowstone

    given = given_of(sets, connections)
    with Flowstone() as flow:
        with compile_errors_shown(flow):
            try:
                started = flow.start(file, given)
            except UsageError as error:
                if isinstance(error, InputError) or error.code == "UNKNOWN_FLAG":
                    raise with_declared_names(flow, file, given, error) from None
                raise
        if not quiet:
            for text in started.warnings:
                say(f"warning: {neutral(text)}\n", sys.stderr)
        raise Exit(drive_and_tell(flow, started.run_id, given, reopen=False, quiet=quiet, **options))
