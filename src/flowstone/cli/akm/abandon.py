"""`akm workflow abandon`: end a run for good."""

from __future__ import annotations

import click

from flowstone.cli.common import output_options
from flowstone.cli.render.formats import Output, emit


@click.command("abandon", epilog="Example: akm workflow abandon 0199f2c4")
@click.argument("run_id", metavar="RUN")
@output_options()
def command(run_id: str, output: Output) -> None:
    """Give RUN up: it becomes failed. A run that has ended is refused."""
    from flowstone.api import Flowstone
    from flowstone.cli.akm.runs import run_id_of, status_of
    from flowstone.cli.akm.text import WRITERS

    with Flowstone() as flow:
        view = flow.abandon(run_id_of(flow, run_id))
        emit(status_of(flow, view, "abandon"), output, WRITERS)
