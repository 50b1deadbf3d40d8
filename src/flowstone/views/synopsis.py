"""A plan told to people: what a workflow is for, what it takes, what it does and what it gives."""

from __future__ import annotations

from typing import Any

from flowstone.plan.model import Param, Plan
from flowstone.values import canonical_json
from flowstone.views.graph import graph_lines, kind_of
from flowstone.views.text import one_line, plain_text, spell_count


def synopsis(plan: Plan) -> dict[str, Any]:
    """The workflow as a JSON object."""
    return {
        "name": plan.name,
        "title": plan.title or plan.name,
        "description": plan.description,
        "language": plan.dialect,
        "tags": list(plan.tags),
        "params": [_param(param) for param in plan.params],
        "connections": [{"name": connection.name, "type": connection.type} for connection in plan.connections],
        "steps": [
            {"id": step.id, "kind": kind_of(step), "needs": list(step.needs), "instructions": step.instructions}
            for step in plan.steps
        ],
        "outputs": [output.name for output in plan.outputs],
    }


def synopsis_lines(plan: Plan) -> list[str]:
    """The workflow in lines of text."""
    lines = graph_lines(plan)
    lines[1:1] = [f"  {line}" for line in plain_text(plan.description or "").splitlines()]
    if plan.params:
        lines.append("parameters (--set name=value)")
        lines += param_lines(plan)
    if plan.connections:
        lines.append("connections (--connection name.field=value)")
        lines += [f"  {connection.name}  {connection.type}" for connection in plan.connections]
    if plan.outputs:
        lines.append(f"outputs: {', '.join(output.name for output in plan.outputs)}")
    return lines


def param_lines(plan: Plan, indent: str = "  ") -> list[str]:
    """A line a param: name, type, whether it must be given, default and description."""
    width = max((len(param.name) for param in plan.params), default=0)
    return [f"{indent}{param.name:<{width}}  {param_facts(param)}".rstrip() for param in plan.params]


def param_facts(param: Param) -> str:
    """What is declared of a param, in one line."""
    facts = [type_of(param)]
    if param.values is not None:
        facts.append(f"one of {', '.join(canonical_json(value) for value in param.values)}")
    if param.pattern is not None:
        facts.append(f"matching {param.pattern}")
    if param.has_default:
        facts.append("default hidden" if param.secret else f"default {one_line(canonical_json(param.default), 60)}")
    elif param.required:
        facts.append("required")
    if param.secret:
        facts.append("secret")
    text = ", ".join(fact for fact in facts if fact)
    about = param.description or (param.schema.get("description") if isinstance(param.schema, dict) else None)
    return f"{text}: {one_line(str(about))}" if about else text


def type_of(param: Param) -> str:
    """The declared type, or nothing."""
    if param.type is not None:
        return param.type
    declared = param.schema.get("type") if isinstance(param.schema, dict) else None
    return "/".join(declared) if isinstance(declared, (list, tuple)) else str(declared or "")


def plan_lines(plan: Plan, digest: str) -> list[str]:
    """A frozen plan in lines of text: its steps, limits, budget and hash."""
    lines = graph_lines(plan)
    budget = plan.budget
    if budget.max_units is not None or budget.max_tokens is not None:
        lines.append(f"budget: {_ceiling(budget.max_units, 'units')}{_ceiling(budget.max_tokens, 'tokens')}".rstrip())
    if plan.limits.run_width is not None:
        lines.append(f"at most {spell_count(plan.limits.run_width, 'unit')} at a time")
    return [*lines, f"plan {digest}"]


def _ceiling(number: int | None, noun: str) -> str:
    return "" if number is None else f"{number:,} {noun} "


def _param(param: Param) -> dict[str, Any]:
    entry: dict[str, Any] = {
        "name": param.name,
        "type": type_of(param) or None,
        "required": param.required,
        "description": param.description,
        "schema": param.schema,
        "secret": param.secret,
    }
    if param.has_default and not param.secret:
        entry["default"] = param.default
    return entry
