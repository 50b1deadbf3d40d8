"""`akm workflow abandon`: end a run for good."""

from __future__ import annotations

import click

from flowstone.cli.common import output_options
from flowstone.cli.render.formats import Output


@click.command("abandon", epilog="Example: akm workflow abandon 0199f2c4")
@click.argument("run_id", metavar="RUN")
@output_options()
def command(run_id: str, output: Output) -> None:
    """Give RUN up: it becomes failed. A run that has ended is refused."""
    from flowstone.api import Flowstone
    from flowstone.cli.akm.runs import emit_status, run_id_of

    with Flowstone() as flow:
        view = flow.abandon(run_id_of(flow, run_id))
        emit_status(flow, view, "abandon", output)
