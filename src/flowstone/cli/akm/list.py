"""`akm workflow list`: the runs of this scope, the newest first."""

from __future__ import annotations

import click

from flowstone.cli.common import output_options
from flowstone.cli.render.formats import Format, Output, emit


@click.command("list", epilog="Example: akm workflow list --active --format text")
@click.option("--ref", help="Only runs of this workflow.")
@click.option("--active", is_flag=True, help="Only active runs.")
@click.option("--children", is_flag=True, help="Also runs that other runs started.")
@click.option("--all-scopes", is_flag=True, help="Runs of all folders.")
@output_options()
def command(ref: str | None, active: bool, children: bool, all_scopes: bool, output: Output) -> None:
    """List runs, the newest first."""
    from flowstone.api import Flowstone
    from flowstone.cli.akm.runs import reading_store, refs_of, word_of
    from flowstone.cli.akm.text import runs_text
    from flowstone.views.runs import run_list

    with Flowstone() as flow:
        scope = None if all_scopes else flow.wiring.scope.key
        store = reading_store(flow)
        refs: list[str | None] = [*refs_of(flow, ref)] if ref is not None else [None]
        rows = [
            row for name in refs for row in store.find(scope=scope, ref=name, active_only=active, children=children)
        ]
        rows.sort(key=lambda row: (row.record.created_at, row.record.id), reverse=True)
        emit(run_list(rows, word_of(flow)), output, {Format.TEXT: runs_text})
