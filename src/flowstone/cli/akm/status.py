"""`akm workflow status`: where a run stands, by its id or as the latest run of a workflow."""

from __future__ import annotations

import click

from flowstone.cli.common import output_options
from flowstone.cli.render.formats import Output


@click.command("status", epilog="Example: akm workflow status workflows/release --units --format text")
@click.argument("target")
@click.option("--units", is_flag=True, help="List every unit and attempt.")
@click.option("--all-scopes", is_flag=True, help="Look for runs of a workflow in all folders.")
@output_options()
def command(target: str, units: bool, all_scopes: bool, output: Output) -> None:
    """Show where a run stands. TARGET is a run id, the beginning of one, or a workflow."""
    from flowstone.api import Flowstone
    from flowstone.cli.akm.runs import RUN_ID, emit_status, latest_run, run_id_of

    with Flowstone() as flow:
        by_id = RUN_ID.fullmatch(target) is not None
        run_id = run_id_of(flow, target) if by_id else latest_run(flow, target, all_scopes=all_scopes)
        emit_status(flow, flow.status(run_id), "status", output, units=units)
