"""The option of the verbs that draw a workflow, and its formats."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

import click

from flowstone.cli.render.terminal import neutral, say, say_document

if TYPE_CHECKING:
    from flowstone.plan.model import Plan

FORMATS = ("text", "mermaid", "dot", "svg", "html")
graph_format: Callable[[Any], Any] = click.option(
    "--format",
    "form",
    type=click.Choice(FORMATS),
    default="text",
    help="How to print the graph: lines of text, a source for Mermaid or Graphviz, a picture or a page.",
)


def say_graph(plan: Plan, form: str, lines: Callable[[Plan], Iterable[str]]) -> None:
    """Print a workflow in a format; `lines` make the text."""
    if form == "text":
        say("".join(f"{neutral(line)}\n" for line in lines(plan)))
        return
    from flowstone.views.graph_formats import GraphFormat, graph_text

    say_document(graph_text(plan, GraphFormat(form)))
