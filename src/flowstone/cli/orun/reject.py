"""`orun reject RUN STEP`: a person's decision about a step that waits for it."""

from __future__ import annotations

import click

from flowstone.cli.flowstone.deciding import decide


@click.command("reject", epilog='Example: orun reject deploy-1764547200000000000 release --note "not before Monday"')
@click.argument("run")
@click.argument("step")
@click.option("--note", help="Why; it is journaled with your name and the time.")
def command(run: str, step: str, note: str | None) -> None:
    """Refuse a step that waits for an approval; it fails.

    The process that runs the job finds the decision by itself; one that comes later does too.
    """
    decide(run, step, note, approved=False, resume="orun run --resume")
