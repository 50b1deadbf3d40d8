"""`orun workflow view FILE`: the steps in file order with what they need (orun facts 2), or a drawing."""

from __future__ import annotations

import click

from flowstone.cli.orun.files import checked
from flowstone.cli.render.terminal import neutral, say, say_document

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

        say_document(graph_text(plan, GraphFormat(form)))
        return
    from flowstone.views.graph import verb_lines

    say("".join(f"{neutral(line)}\n" for line in verb_lines(plan)))
