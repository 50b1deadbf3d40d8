"""What a run and its parts used of models and what that costs, as JSON objects and as words."""

from __future__ import annotations

import math
from typing import Any

from flowstone.run.state import Attempt, State, StepState
from flowstone.run.usage import Usage, Used, total, usage_of
from flowstone.values import Json


def run_usage(state: State) -> Usage | None:
    """All that the run's steps used, over all its drives; None where no model was asked."""
    return total(step_usage(state, step) for step in state.order)


def step_usage(state: State, step: StepState) -> Usage | None:
    """What a step's units and its judge used, over all its executions."""
    return total(
        (
            usage_of(step.used, step.plan.unit.spec if step.plan.unit else None, state.plan.prices),
            usage_of(step.judges_used, step.plan.gate.judge if step.plan.gate else None, state.plan.prices),
        )
    )


def attempt_usage(state: State, step: StepState, attempt: Attempt) -> Usage | None:
    """What the last try of an attempt used."""
    if attempt.outcome is None:
        return None
    used = Used()
    used.add(attempt.outcome)
    gate, unit = step.plan.gate, step.plan.unit
    spec = (gate.judge if gate else None) if attempt.index < 0 else (unit.spec if unit else None)
    return usage_of(used, spec, state.plan.prices)


def usage_object(usage: Usage | None) -> dict[str, Any]:
    """`{"usage": {…}}`, or nothing: parts and a price that are not known are left out, never 0."""
    if usage is None:
        return {}
    shown: dict[str, Any] = {"tokens": usage.tokens}
    if usage.tokens_in + usage.tokens_out == usage.tokens:
        shown |= {"inputTokens": usage.tokens_in, "outputTokens": usage.tokens_out}
    if usage.dollars is not None:
        shown["costUsd"] = round(usage.dollars, 9)
        if usage.partial:
            shown["costPartial"] = True
    return {"usage": shown}


def usage_text(usage: dict[str, Json] | None) -> str:
    """A usage object in words: `1,200 tokens (1,000 in, 200 out), $0.012`; empty for none."""
    if not usage:
        return ""
    text = f"{usage['tokens']:,} tokens"
    if "inputTokens" in usage:
        text += f" ({usage['inputTokens']:,} in, {usage['outputTokens']:,} out)"
    if "costUsd" in usage:
        dollars = usage["costUsd"]
        assert isinstance(dollars, float)
        text += f", {'at least ' if usage.get('costPartial') else ''}${money(dollars)}"
    return text


def money(dollars: float) -> str:
    """Two decimals, or so many that two digits show of a small amount."""
    decimals = 2 if dollars == 0 or dollars >= 0.1 else 1 - math.floor(math.log10(dollars))
    return f"{dollars:,.{min(decimals, 9)}f}"


def budget_object(state: State) -> dict[str, Any]:
    """`{"budget": {…}}` with ceilings and figures, or nothing where the workflow has no budget."""
    budget = state.plan.budget
    shown: dict[str, Any] = {}
    if budget.max_units is not None:
        shown["maxUnits"] = {"limit": budget.max_units, "used": state.dispatched}
    if budget.max_tokens is not None:
        shown["maxTokens"] = {"limit": budget.max_tokens, "used": state.tokens}
    return {"budget": shown} if shown else {}


def budget_warnings(state: State) -> list[str]:
    """What the run was warned about on its way to a ceiling; each stands for the run's whole life."""
    return [warning.text for warning in state.alarms.given]
