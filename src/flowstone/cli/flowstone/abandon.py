"""`flowstone abandon RUN`: end a run for good."""

from __future__ import annotations

import click

from flowstone.cli.flowstone.choice import run_choice
from flowstone.cli.render.terminal import say


@click.command("abandon", epilog="Example: flowstone abandon --last")
@run_choice
def command(run: str | None, last: bool) -> None:
    """End a run for good: it cannot be resumed. Without RUN it is the newest one of this folder."""
    from flowstone.api import Flowstone
    from flowstone.cli.runs import chosen_run

    with Flowstone() as flow:
        view = flow.abandon(chosen_run(flow, run, last))
    say(f"abandoned {view.row.record.id}\n")
