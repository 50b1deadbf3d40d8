"""`flowstone approve RUN STEP`: a person in the place of a judge."""

from __future__ import annotations

import click

from flowstone.cli.flowstone.deciding import decide


@click.command("approve", epilog='Example: flowstone approve 01a22f36 review --note "read it myself"')
@click.argument("run")
@click.argument("step")
@click.option("--note", help="Why; it is journaled with your name and the time.")
def command(run: str, step: str, note: str | None) -> None:
    """Answer a step that waits for an approval, or let one through that its gate rejected for good or left open."""
    decide(run, step, note, approved=True)
