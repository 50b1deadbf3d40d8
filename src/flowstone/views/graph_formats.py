"""A plan's steps as a graph in formats that other programs draw: Mermaid, Graphviz, SVG and a page."""

from __future__ import annotations

from enum import StrEnum
from html import escape

from flowstone.plan.model import Plan
from flowstone.views.graph import Edge, graph, graph_svg
from flowstone.views.text import one_line, spell_count

STYLE = (
    ".graph{font:13px system-ui,sans-serif}"
    ".graph rect{fill:#fff;stroke:#667;stroke-width:1.2}"
    ".graph text{fill:#112}.graph .kind{fill:#667;font-size:11px}"
    ".graph .edge{fill:none;stroke:#889;stroke-width:1.4}.graph .chosen{stroke-dasharray:5 4}"
    "@media(prefers-color-scheme:dark){.graph rect{fill:#223;stroke:#99a}.graph text{fill:#eef}"
    ".graph .kind{fill:#aab}.graph .edge{stroke:#99a}}"
)


class GraphFormat(StrEnum):
    """How a graph may be written beside plain text."""

    MERMAID = "mermaid"
    DOT = "dot"
    SVG = "svg"
    HTML = "html"


def graph_text(plan: Plan, form: GraphFormat) -> str:
    """The whole file, with a line feed at its end."""
    match form:
        case GraphFormat.MERMAID:
            return mermaid(plan)
        case GraphFormat.DOT:
            return dot(plan)
        case GraphFormat.SVG:
            return graph_svg(plan, {}, style=STYLE) + "\n"
        case GraphFormat.HTML:
            return page(plan)


def mermaid(plan: Plan) -> str:
    """A flowchart from left to right; the edges of a route are dotted."""
    laid = graph(plan)
    names = {node.step: f"n{index}" for index, node in enumerate(laid.nodes)}
    lines = ["flowchart LR"]
    lines += [f'  {names[node.step]}["{_mermaid(node.step)}<br/><i>{_mermaid(node.kind)}</i>"]' for node in laid.nodes]
    lines += [f"  {names[edge.source]} {_arrow(edge)} {names[edge.target]}" for edge in laid.edges]
    return "\n".join(lines) + "\n"


def dot(plan: Plan) -> str:
    """A digraph of Graphviz, from left to right; the edges of a route are dashed."""
    laid = graph(plan)
    lines = [f"digraph {_quoted(plan.name)} {{", "  rankdir=LR;", '  node [shape=box, style=rounded, fontname="sans"];']
    lines += [f"  {_quoted(node.step)} [label={_quoted(node.step, node.kind)}];" for node in laid.nodes]
    lines += [
        f"  {_quoted(edge.source)} -> {_quoted(edge.target)}{' [style=dashed]' if edge.chosen else ''};"
        for edge in laid.edges
    ]
    return "\n".join([*lines, "}"]) + "\n"


def page(plan: Plan) -> str:
    """One self-contained page: the title, the number of steps and the drawing."""
    title = escape(one_line(plan.title or plan.name))
    drawing = graph_svg(plan, {}, style=STYLE)
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{title}</title>\n"
        "<style>:root{color-scheme:light dark}body{font:15px system-ui,sans-serif;margin:2rem}"
        ".drawing{overflow-x:auto}</style>\n"
        f"</head>\n<body>\n<h1>{title}</h1>\n<p>{spell_count(len(plan.steps), 'step')}</p>\n"
        f'<div class="drawing">{drawing}</div>\n</body>\n</html>\n'
    )


def _arrow(edge: Edge) -> str:
    return "-.->" if edge.chosen else "-->"


def _mermaid(text: str) -> str:
    """Text inside quotes, where Mermaid reads entities with a number sign."""
    return "".join(sign if sign.isalnum() or sign in " -_.:/" else f"#{ord(sign)};" for sign in one_line(text))


def _quoted(*lines: str) -> str:
    escaped = (one_line(line).replace("\\", "\\\\").replace('"', '\\"') for line in lines)
    return '"' + "\\n".join(escaped) + '"'
