"""`flowstone reject RUN STEP`: a person in the place of a judge."""

from __future__ import annotations

import click

from flowstone.cli.flowstone.deciding import decide


@click.command("reject", epilog='Example: flowstone reject 01a22f36 review --note "read it myself"')
@click.argument("run")
@click.argument("step")
@click.option("--note", help="Why; it is journaled with your name and the time.")
def command(run: str, step: str, note: str | None) -> None:
    """Refuse a step that waits for an approval, or fail one whose gate gave no verdict or rejected it for good."""
    decide(run, step, note, approved=False)
