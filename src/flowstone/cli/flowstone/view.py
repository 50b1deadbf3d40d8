"""`flowstone view FILE`: the steps of a workflow and what they wait for, or a drawing of them."""

from __future__ import annotations

import click

from flowstone.cli.drawing import graph_format, say_graph
from flowstone.cli.flowstone.sources import compile_errors_shown


@click.command("view", epilog="Example: flowstone view release.md")
@click.argument("file", metavar="FILE|REF")
@graph_format
def command(file: str, form: str) -> None:
    """Print the steps of FILE, a line each, with what each of them waits for.

    Below them stand those of the workflows that FILE nests.
    """
    from flowstone.api import Flowstone
    from flowstone.views.nesting import family_lines

    with Flowstone() as flow, compile_errors_shown(flow):
        plan = flow.compiled_plan(file)
    say_graph(plan, form, family_lines)
