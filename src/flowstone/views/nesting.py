"""A plan → the workflows that it nests, each where it is nested: what drawings and texts show below it."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from flowstone.plan.model import Plan
from flowstone.plan.units import ChildSpec
from flowstone.views.graph import graph_lines
from flowstone.views.text import one_line

SHOWN = 100
"""How many nested workflows are shown; a deep family would fill any page."""

MORE = f"… and more: {SHOWN} nested workflows are shown"


class Nested(msgspec.Struct, frozen=True):
    """`path` is the way to the step that nests it (`outer/inner`), `ref` what names the file there."""

    path: str
    ref: str
    plan: Plan

    @property
    def title(self) -> str:
        return f"{self.path}: {self.ref}"


def children_of(plan: Plan, front: str = "") -> Iterator[Nested]:
    """The workflows that the steps of a plan nest themselves, in file order; each as often as it is nested."""
    for step in plan.steps:
        spec = step.unit.spec if step.unit is not None else None
        if isinstance(spec, ChildSpec) and spec.plan is not None:
            yield Nested(f"{front}{step.id}", spec.ref, msgspec.convert(spec.plan, Plan, strict=True))


def family(plan: Plan) -> tuple[list[Nested], bool]:
    """All nested workflows, each before what it nests itself, and whether some were left out."""
    found: list[Nested] = []
    waiting = list(children_of(plan))[::-1]
    while waiting and len(found) < SHOWN:
        nested = waiting.pop()
        found.append(nested)
        waiting += list(children_of(nested.plan, f"{nested.path}/"))[::-1]
    return found, bool(waiting)


def family_lines(plan: Plan) -> list[str]:
    """The workflow in lines of text, and below it each one that it nests, after the way to it."""
    nested, more = family(plan)
    lines = graph_lines(plan)
    for one in nested:
        lines += ["", one_line(one.title), *(f"  {line}" for line in graph_lines(one.plan))]
    return [*lines, "", MORE] if more else lines
