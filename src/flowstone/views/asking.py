"""A step that waits for a person → what it asks, and the words that answer it."""

from __future__ import annotations

from flowstone.expr.model import Literal, Template
from flowstone.plan.units import ApprovalSpec
from flowstone.run.events import Status
from flowstone.run.state import StepState
from flowstone.views.specs import spelt
from flowstone.views.text import one_line


def question_of(run_id: str, step: StepState) -> str | None:
    """What an open step asks, as its author wrote it, and how to decide it; None for all other steps."""
    spec = step.plan.unit.spec if step.plan.unit is not None else None
    if not isinstance(spec, ApprovalSpec) or step.status is not Status.OPEN:
        return None
    match spec.prompt:
        case Literal(value=value):
            prompt = str(value)
        case Template():
            prompt = spelt(spec.prompt)
        case _:
            prompt = ""
    return f"asks: {one_line(prompt)}  (approve {run_id} {spec.guards or step.id}, or reject)"
