"""A plan's steps as a graph in formats that other programs draw: Mermaid, Graphviz, SVG and a page."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from enum import StrEnum
from html import escape

from flowstone.plan.model import Plan
from flowstone.views.graph import MARGIN, Edge, drawing, graph, graph_svg, svg
from flowstone.views.nesting import MORE, Nested, family
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
    """The whole file, with a line feed at its end. Nested workflows are drawn with it, to some bound."""
    match form:
        case GraphFormat.MERMAID:
            return mermaid(plan)
        case GraphFormat.DOT:
            return dot(plan)
        case GraphFormat.SVG:
            return picture(plan) + "\n"
        case GraphFormat.HTML:
            return page(plan)


def mermaid(plan: Plan) -> str:
    """A flowchart from left to right; the edges of a route are dotted. A nested workflow is a group."""
    nested, more = family(plan)
    names = {path: f"n{index}" for index, path in enumerate(_paths(plan, nested))}
    lines = ["flowchart LR", *_mermaid_steps(plan, "", names, "  ")]
    for index, one in enumerate(nested):
        lines.append(f'  subgraph w{index}["{_mermaid(one.title)}"]')
        lines += _mermaid_steps(one.plan, f"{one.path}/", names, "    ")
        lines += ["  end", f"  {names[one.path]} --o w{index}"]
    return "\n".join([*lines, *([f"  %% {MORE}"] if more else [])]) + "\n"


def dot(plan: Plan) -> str:
    """A digraph of Graphviz, from left to right; the edges of a route are dashed. A nested workflow is a cluster."""
    nested, more = family(plan)
    lines = [f"digraph {_quoted(plan.name)} {{", "  rankdir=LR;", '  node [shape=box, style=rounded, fontname="sans"];']
    lines += _dot_steps(plan, "", "  ")
    for index, one in enumerate(nested):
        first = f"{one.path}/{one.plan.steps[0].id}" if one.plan.steps else one.path
        lines += [f"  subgraph cluster_{index} {{", f"    label={_quoted(one.title)};"]
        lines += [*_dot_steps(one.plan, f"{one.path}/", "    "), "  }"]
        lines.append(f"  {_quoted(one.path)} -> {_quoted(first)} [style=dotted, arrowhead=odot];")
    return "\n".join([*lines, *([f"  // {MORE}"] if more else []), "}"]) + "\n"


def picture(plan: Plan) -> str:
    """One SVG: the drawing of the plan, and below it that of each nested workflow with the way to it."""
    nested, more = family(plan)
    drawn = drawing(plan, {})
    parts, width, y = [drawn.body], drawn.width, drawn.height
    for one in nested:
        inner = drawing(one.plan, {})
        title = f'<text x="{MARGIN}" y="{y + 20}">{escape(one_line(one.title, 120))}</text>'
        parts.append(f'{title}<g transform="translate(0 {y + 24})">{inner.body}</g>')
        width, y = max(width, inner.width), y + 24 + inner.height
    if more:
        parts.append(f'<text class="kind" x="{MARGIN}" y="{y + 16}">{escape(MORE)}</text>')
        y += 24
    return svg(width, y, "".join(parts), STYLE)


def page(plan: Plan) -> str:
    """One self-contained page: the title, the number of steps and the drawing; then each nested workflow."""
    title = escape(one_line(plan.title or plan.name))
    nested, more = family(plan)
    sections = "".join(
        f"<h2>{escape(one_line(one.title))}</h2>\n<p>{spell_count(len(one.plan.steps), 'step')}</p>\n"
        f'<div class="drawing">{graph_svg(one.plan, {})}</div>\n'
        for one in nested
    )
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{title}</title>\n"
        "<style>:root{color-scheme:light dark}body{font:15px system-ui,sans-serif;margin:2rem}"
        f".drawing{{overflow-x:auto}}h2{{font-size:1.1rem}}{STYLE}</style>\n"
        f"</head>\n<body>\n<h1>{title}</h1>\n<p>{spell_count(len(plan.steps), 'step')}</p>\n"
        f'<div class="drawing">{graph_svg(plan, {})}</div>\n'
        f"{sections}{f'<p>{escape(MORE)}</p>' if more else ''}</body>\n</html>\n"
    )


def _paths(plan: Plan, nested: list[Nested]) -> list[str]:
    """The ways to all steps."""
    inner = [f"{one.path}/{step.id}" for one in nested for step in one.plan.steps]
    return [*(step.id for step in plan.steps), *inner]


def _mermaid_steps(plan: Plan, front: str, names: Mapping[str, str], indent: str) -> Iterator[str]:
    laid = graph(plan)
    for node in laid.nodes:
        yield f'{indent}{names[front + node.step]}["{_mermaid(node.step)}<br/><i>{_mermaid(node.kind)}</i>"]'
    for edge in laid.edges:
        yield f"{indent}{names[front + edge.source]} {_arrow(edge)} {names[front + edge.target]}"


def _dot_steps(plan: Plan, front: str, indent: str) -> Iterator[str]:
    laid = graph(plan)
    for node in laid.nodes:
        yield f"{indent}{_quoted(front + node.step)} [label={_quoted(node.step, node.kind)}];"
    for edge in laid.edges:
        style = " [style=dashed]" if edge.chosen else ""
        yield f"{indent}{_quoted(front + edge.source)} -> {_quoted(front + edge.target)}{style};"


def _arrow(edge: Edge) -> str:
    return "-.->" if edge.chosen else "-->"


def _mermaid(text: str) -> str:
    """Text inside quotes, where Mermaid reads entities with a number sign."""
    return "".join(sign if sign.isalnum() or sign in " -_.:/" else f"#{ord(sign)};" for sign in one_line(text))


def _quoted(*lines: str) -> str:
    escaped = (one_line(line).replace("\\", "\\\\").replace('"', '\\"') for line in lines)
    return '"' + "\\n".join(escaped) + '"'
