"""`flowstone show FILE`: a workflow with its parameters, steps and outputs."""

from __future__ import annotations

import click

from flowstone.cli.flowstone.sources import compile_errors_shown
from flowstone.cli.render.terminal import neutral, say, say_document


@click.command("show", epilog="Example: flowstone show workflows/release")
@click.argument("file", metavar="FILE|REF")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
def command(file: str, as_json: bool) -> None:
    """Show what FILE is for, what it takes, what it does and what it gives."""
    from flowstone.api import Flowstone
    from flowstone.values import pretty_json
    from flowstone.views.synopsis import synopsis, synopsis_lines

    with Flowstone() as flow, compile_errors_shown(flow):
        plan = flow.compiled_plan(file)
    if as_json:
        say_document(pretty_json(synopsis(plan)) + "\n")
    else:
        say("".join(f"{neutral(line)}\n" for line in synopsis_lines(plan)))
