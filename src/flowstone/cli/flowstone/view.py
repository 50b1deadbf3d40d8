"""`flowstone view FILE`: the steps of a workflow and what they wait for."""

from __future__ import annotations

import click

from flowstone.cli.flowstone.sources import compile_errors_shown
from flowstone.cli.render.terminal import neutral, say


@click.command("view", epilog="Example: flowstone view release.md")
@click.argument("file", metavar="FILE|REF")
def command(file: str) -> None:
    """Print the steps of FILE, a line each, with what each of them waits for."""
    from flowstone.api import Flowstone
    from flowstone.views.graph import graph_lines

    with Flowstone() as flow, compile_errors_shown(flow):
        plan = flow.compiled_plan(file)
    say("".join(f"{neutral(line)}\n" for line in graph_lines(plan)))
