"""`orun workflow view FILE`: the steps in file order with what they need (orun facts 2)."""

from __future__ import annotations

import click

from flowstone.cli.orun.files import checked
from flowstone.cli.render.terminal import neutral, say


@click.command("view", epilog="Example: orun workflow view release.yaml")
@click.argument("file")
def command(file: str) -> None:
    """Print the steps of FILE."""
    from flowstone.views.graph import verb_lines

    say("".join(f"{neutral(line)}\n" for line in verb_lines(checked(file).plan)))
