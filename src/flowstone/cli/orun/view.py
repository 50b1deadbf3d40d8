"""`orun workflow view FILE`: the steps in file order with what they need (orun facts 2), or a drawing."""

from __future__ import annotations

import click

from flowstone.cli.drawing import graph_format, say_graph
from flowstone.cli.orun.files import checked


@click.command("view", epilog="Example: orun workflow view release.yaml --format svg > release.svg")
@click.argument("file")
@graph_format
def command(file: str, form: str) -> None:
    """Print the steps of FILE and what they wait for; a drawing shows nested workflows too."""
    from flowstone.views.graph import verb_lines

    say_graph(checked(file).plan, form, verb_lines)
