"""Checks the plans that a plan nests: how deep, how large, and what each of them exports."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from flowstone.plan.bounds import CHILD_BYTES, CHILD_LEVELS
from flowstone.plan.model import Plan
from flowstone.plan.units import ChildSpec
from flowstone.values import canonical_bytes

BARE_EXPORTS = ("runId", "status")
"""What a workflow exports that declares no outputs."""


def nesting_problems(plan: Plan) -> Iterator[str]:
    """What is wrong with the nested plans of a run that holds them whole."""
    size, waiting = 0, [(child, 1) for child in nested_plans(plan)]
    while waiting:
        child, level = waiting.pop()
        size += embedded_bytes(child)
        waiting += [(inner, level + 1) for inner in nested_plans(child)]
        if level > CHILD_LEVELS:
            yield f"workflows are nested more than {CHILD_LEVELS} levels deep"
            return
        if size > CHILD_BYTES:
            yield f"the nested plans have more than {CHILD_BYTES} bytes"
            return


def nested_plans(plan: Plan) -> Iterator[Plan]:
    """The plans that the steps of a plan nest themselves."""
    for step in plan.steps:
        spec = step.unit.spec if step.unit is not None else None
        if isinstance(spec, ChildSpec) and spec.plan is not None:
            yield msgspec.convert(spec.plan, Plan, strict=True)


def embedded_bytes(plan: Plan) -> int:
    """How much an embedded plan counts: its canonical JSON, instructions that stand in it twice once."""
    return len(canonical_bytes(msgspec.to_builtins(plan))) - _twice(plan)


def exports_of(plan: Plan) -> tuple[str, ...]:
    """The names that a completed run of a plan exports."""
    return tuple(output.name for output in plan.outputs) or BARE_EXPORTS


def _twice(plan: Plan) -> int:
    """Bytes of the instructions that stand in a step and in its unit as well, at every level."""
    own = sum(
        len(canonical_bytes(step.instructions))
        for step in plan.steps
        if step.instructions is not None and _content(step.unit and step.unit.spec) == step.instructions
    )
    return own + sum(_twice(child) for child in nested_plans(plan))


def _content(spec: Any) -> str | None:
    return getattr(spec, "content", None)
