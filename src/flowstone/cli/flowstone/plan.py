"""`flowstone plan FILE`: the frozen plan of a workflow; nothing is written."""

from __future__ import annotations

import click

from flowstone.cli.flowstone.sources import compile_errors_shown
from flowstone.cli.render.terminal import neutral, say, say_document


@click.command("plan", epilog="Example: flowstone plan release.md --json | jq .plan.steps")
@click.argument("file", metavar="FILE|REF")
@click.option("--json", "as_json", is_flag=True, help="Print the plan and its hash as one JSON document.")
def command(file: str, as_json: bool) -> None:
    """Show what a run of FILE would do. Nothing is started or written."""
    from flowstone.api import Flowstone
    from flowstone.values import decode_json, pretty_json
    from flowstone.views.synopsis import plan_lines

    with Flowstone() as flow, compile_errors_shown(flow):
        frozen = flow.plan(file)
    if as_json:
        say_document(
            pretty_json({"planHash": frozen.hash, "plan": decode_json(frozen.text, whole_floats=False)}) + "\n"
        )
        return
    say("".join(f"{neutral(line)}\n" for line in plan_lines(frozen.plan, frozen.hash)))
