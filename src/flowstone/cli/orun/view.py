"""`orun workflow view FILE`: the steps in file order with what they need (orun facts 2), or a drawing."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from flowstone.cli.orun.files import checked
from flowstone.cli.render.terminal import neutral, say

if TYPE_CHECKING:
    from flowstone.plan.model import Step


FORMATS = ("text", "mermaid", "dot", "svg", "html")


@click.command("view", epilog="Example: orun workflow view release.yaml --format svg > release.svg")
@click.argument("file")
@click.option(
    "--format",
    "form",
    type=click.Choice(FORMATS),
    default="text",
    help="How to print the graph: lines of text, a source for Mermaid or Graphviz, a picture or a page.",
)
def command(file: str, form: str) -> None:
    """Print the steps of FILE and what they wait for."""
    plan = checked(file).plan
    if form != "text":
        from flowstone.views.graph_formats import GraphFormat, graph_text

        say(graph_text(plan, GraphFormat(form)))
        return
    lines = [f"workflow {plan.name} ({len(plan.steps)} steps)", *(_line(step) for step in plan.steps)]
    say("".join(f"{neutral(line)}\n" for line in lines))


def _line(step: Step) -> str:
    from flowstone.plan.units import ChildSpec, ExecSpec

    spec = step.unit.spec if step.unit is not None else None
    verb = "run" if isinstance(spec, ExecSpec) else "workflow" if isinstance(spec, ChildSpec) else "action"
    needs = f" ← {', '.join(step.needs)}" if step.needs else ""
    return f"  {step.id} [{verb}]{needs}"
