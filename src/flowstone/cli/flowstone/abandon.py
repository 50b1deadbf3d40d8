"""`flowstone abandon RUN`: give a run up."""

from __future__ import annotations

import click

from flowstone.cli.flowstone.choice import run_choice
from flowstone.cli.render.terminal import say


@click.command("abandon", epilog="Example: flowstone abandon --last")
@run_choice
def command(run: str | None, last: bool) -> None:
    """Give a run up: nothing goes on with it by itself, and only a resume takes it up again.

    Without RUN it is the newest one of this folder.
    """
    from flowstone.api import Flowstone
    from flowstone.cli.runs import chosen_run

    with Flowstone() as flow:
        view = flow.abandon(chosen_run(flow, run, last))
    say(f"abandoned {view.row.record.id}\n")
