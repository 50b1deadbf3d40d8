"""`akm workflow resume`: reopen a failed or blocked run; driving it on is `run`'s part."""

from __future__ import annotations

import click

from flowstone.cli.common import output_options
from flowstone.cli.render.formats import Output


@click.command("resume", epilog="Example: akm workflow resume 0199f2c4 && akm workflow run 0199f2c4")
@click.argument("run_id", metavar="RUN")
@output_options()
def command(run_id: str, output: Output) -> None:
    """Reopen RUN, which failed or is blocked: the step that stopped it is pending again."""
    from flowstone.api import Flowstone
    from flowstone.cli.akm.runs import SOURCE_CHANGED, emit_status, run_id_of

    with Flowstone() as flow:
        view = flow.status(run_id_of(flow, run_id))
        warnings: tuple[str, ...] = ()
        if flow.source_changed(view.row):
            warnings = (SOURCE_CHANGED,)
            output.warn(SOURCE_CHANGED)
        if not view.state.active or any(step.spent for step in view.state.order):
            view = flow.resume(view.row.record.id)
        emit_status(flow, view, "resume", output, warnings=warnings)
