"""A plan's steps as a graph in layers: lines of text for `view`, a picture (SVG) for the report."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from html import escape
from typing import assert_never

import msgspec

from flowstone.plan.model import FanOut, Once, Plan, Poll, Retry, Route, Single, Step
from flowstone.plan.units import (
    AgentSpec,
    AnySpec,
    ApprovalSpec,
    AssetTarget,
    ChildSpec,
    ExecSpec,
    HttpSpec,
    LlmSpec,
    PromptTarget,
    ScriptSpec,
    SleepSpec,
)
from flowstone.views.text import one_line, spell_count

WIDTH, HEIGHT, GAP_X, GAP_Y, MARGIN = 176, 46, 56, 18, 12
"""Measures of the picture, in pixels."""


class Node(msgspec.Struct, frozen=True):
    """A step at a place: `layer` counts the longest way to it, `row` its place in the layer."""

    step: str
    kind: str
    layer: int
    row: int


class Edge(msgspec.Struct, frozen=True):
    """From a step to one that needs it; `chosen` when a route selects the later one."""

    source: str
    target: str
    chosen: bool = False


class Graph(msgspec.Struct, frozen=True):
    """Nodes in the file's order and edges between them."""

    nodes: tuple[Node, ...]
    edges: tuple[Edge, ...]
    layers: int
    height: int


def graph(plan: Plan) -> Graph:
    """Lay the steps out: each in the layer after the last step that it waits for."""
    edges = _edges(plan)
    layers = _layers(plan, edges)
    rows: dict[int, int] = {}
    nodes = []
    for step in plan.steps:
        layer = layers[step.id]
        nodes.append(Node(step.id, kind_of(step), layer, rows.get(layer, 0)))
        rows[layer] = rows.get(layer, 0) + 1
    return Graph(tuple(nodes), edges, max(layers.values(), default=-1) + 1, max(rows.values(), default=0))


def graph_lines(plan: Plan) -> list[str]:
    """The workflow in lines of text: its name, then a line a step with what it waits for."""
    title = plan.title or plan.name
    lines = [f"{one_line(title)} ({spell_count(len(plan.steps), 'step')})"]
    width = max((len(step.id) for step in plan.steps), default=0)
    kinds = {step.id: kind_of(step) for step in plan.steps}
    kind_width = max((len(kind) for kind in kinds.values()), default=0)
    for step in plan.steps:
        needs = f"  ← {', '.join(step.needs)}" if step.needs else ""
        line = f"  {step.id:<{width}}  {kinds[step.id]:<{kind_width}}{needs}{_remarks(step)}"
        lines.append(line.rstrip())
    return lines


def verb_lines(plan: Plan) -> list[str]:
    """The workflow in the short lines of orun: each step with its verb and its needs (orun facts 2)."""
    lines = [f"workflow {plan.name} ({len(plan.steps)} steps)"]
    for step in plan.steps:
        spec = step.unit.spec if step.unit is not None else None
        verb = VERBS.get(type(spec), "action")
        needs = f" ← {', '.join(step.needs)}" if step.needs else ""
        lines.append(f"  {step.id} [{verb}]{needs}")
    return lines


VERBS: dict[type, str] = {ExecSpec: "run", ChildSpec: "workflow", ApprovalSpec: "approval"}


def kind_of(step: Step) -> str:
    """What a step does, in a word or two."""
    action = step.action
    match action:
        case Route():
            return "route"
        case Single():
            return spec_kind(action.unit.spec)
        case FanOut():
            return f"map of {spec_kind(action.unit.spec)}"
        case _:
            assert_never(action)


def spec_kind(spec: AnySpec) -> str:
    """The kind of a unit, for people."""
    match spec:
        case ExecSpec():
            return "command" if spec.script is None else "script"
        case SleepSpec() | HttpSpec() | ScriptSpec() | ApprovalSpec():
            return str(type(spec).__struct_config__.tag)
        case ChildSpec():
            return "workflow"
        case LlmSpec():
            return "model"
        case AgentSpec():
            return "agent"
        case PromptTarget():
            return "instructions"
        case AssetTarget():
            return "asset"
        case _:
            assert_never(spec)


def graph_svg(
    plan: Plan, statuses: Mapping[str, str], href: Callable[[str], str] | None = None, style: str = ""
) -> str:
    """The graph as an SVG; `statuses` name the classes of the boxes, `href` their links, `style` is CSS.

    Inside a page that has styles of its own, `style` is left out.
    """
    drawn = drawing(plan, statuses, href)
    return svg(drawn.width, drawn.height, drawn.body, style)


class Drawing(msgspec.Struct, frozen=True):
    """The boxes and lines of a graph as elements of an SVG, from the upper left corner; pixels."""

    width: int
    height: int
    body: str


def drawing(plan: Plan, statuses: Mapping[str, str], href: Callable[[str], str] | None = None) -> Drawing:
    """The elements of `graph_svg` without what is around them."""
    laid = graph(plan)
    places = {node.step: _place(node) for node in laid.nodes}
    parts = [_edge_svg(edge, places) for edge in laid.edges]
    parts += [_node_svg(node, places[node.step], statuses.get(node.step), href) for node in laid.nodes]
    width = 2 * MARGIN + max(1, laid.layers) * (WIDTH + GAP_X) - GAP_X
    height = 2 * MARGIN + max(1, laid.height) * (HEIGHT + GAP_Y) - GAP_Y
    return Drawing(width, height, "".join(parts))


def svg(width: int, height: int, body: str, style: str = "") -> str:
    """A whole SVG around elements."""
    return (
        '<svg xmlns="http://www.w3.org/2000/svg" class="graph" role="img" aria-label="Graph of the steps" '
        f'width="{width}" height="{height}" viewBox="0 0 {width} {height}">'
        f"{f'<style>{style}</style>' if style else ''}{body}</svg>"
    )


def _edges(plan: Plan) -> tuple[Edge, ...]:
    edges = []
    for step in plan.steps:
        edges += [Edge(need, step.id, need in step.selected_by) for need in step.needs]
        edges += [Edge(router, step.id, True) for router in step.selected_by if router not in step.needs]
    return tuple(edges)


def _layers(plan: Plan, edges: tuple[Edge, ...]) -> dict[str, int]:
    """Longest paths; steps may stand in the file before those that they need."""
    before: dict[str, list[str]] = {step.id: [] for step in plan.steps}
    after: dict[str, list[str]] = {step.id: [] for step in plan.steps}
    for edge in edges:
        before[edge.target].append(edge.source)
        after[edge.source].append(edge.target)
    layers = dict.fromkeys(before, 0)
    missing = {step: len(sources) for step, sources in before.items()}
    ready = [step for step, count in missing.items() if count == 0]
    for step in ready:  # grows while it is walked
        for later in after[step]:
            layers[later] = max(layers[later], layers[step] + 1)
            missing[later] -= 1
            if missing[later] == 0:
                ready.append(later)
    return layers


def _remarks(step: Step) -> str:
    found = []
    action = step.action
    if isinstance(action, Route):
        arms = [f"{branch.match} → {branch.step}" for branch in action.branches]
        arms += [f"else → {action.default}"] if action.default else []
        found.append(f"{action.value.text}: {', '.join(arms)}")
    if isinstance(action, FanOut):
        found.append(f"over {action.over.text}")
    if step.when is not None:
        found.append(f"if {one_line(step.when.source, 60)}")
    if (text := _repeat(step)) is not None:
        found.append(text)
    if step.gate is not None:
        found.append("gate")
    return f"  ({'; '.join(found)})" if found else ""


def _repeat(step: Step) -> str | None:
    repeat = step.repeat
    match repeat:
        case Once():
            return None
        case Retry():
            return f"retries: {repeat.extra}"
        case Poll():
            return f"polls until {one_line(repeat.until.source, 60)}"
        case _:
            assert_never(repeat)


def _place(node: Node) -> tuple[int, int]:
    return MARGIN + node.layer * (WIDTH + GAP_X), MARGIN + node.row * (HEIGHT + GAP_Y)


def _edge_svg(edge: Edge, places: Mapping[str, tuple[int, int]]) -> str:
    x1, y1 = places[edge.source]
    x2, y2 = places[edge.target]
    x1, y1, y2 = x1 + WIDTH, y1 + HEIGHT // 2, y2 + HEIGHT // 2
    bend = max(24, (x2 - x1) // 2)
    kind = "edge chosen" if edge.chosen else "edge"
    return f'<path class="{kind}" d="M{x1} {y1}C{x1 + bend} {y1} {x2 - bend} {y2} {x2} {y2}"/>'


def _node_svg(node: Node, place: tuple[int, int], status: str | None, href: Callable[[str], str] | None) -> str:
    x, y = place
    name = node.step if len(node.step) <= 22 else node.step[:21] + "…"
    state = "" if status is None else f" s-{escape(status)}"
    body = (
        f'<g class="node{state}"><title>{escape(node.step)}: {escape(status or node.kind)}</title>'
        f'<rect x="{x}" y="{y}" width="{WIDTH}" height="{HEIGHT}" rx="7"/>'
        f'<text x="{x + 12}" y="{y + 20}">{escape(name)}</text>'
        f'<text class="kind" x="{x + 12}" y="{y + 36}">{escape(node.kind)}</text></g>'
    )
    return body if href is None else f'<a href="{escape(href(node.step))}">{body}</a>'
