"""What a step's execution did, in a sentence for people (akm facts 14). Pure."""

from __future__ import annotations

from typing import Any

from flowstone.plan.model import OnError
from flowstone.run.events import Status
from flowstone.run.outcome import Outcome, Reason
from flowstone.run.state import StepState
from flowstone.values import canonical_json, clip


def with_vote(summary: str, detail: Any) -> str:
    """The summary with the note of a vote that was decided (akm facts 14)."""
    vote = detail.get("vote") if isinstance(detail, dict) else None
    if vote is None:
        return summary
    winner = vote["winner"] if isinstance(vote["winner"], str) else canonical_json(vote["winner"])
    return f"{summary} Vote: {clip(winner, 200)} won with {vote['votes']} of {vote['total']} vote(s)."


def whole_failure(step: StepState, outcomes: list[Outcome | None]) -> tuple[Reason, str] | None:
    """Why the step as a whole failed, whatever becomes of its units; None where it did not."""
    if step.halt is not None and step.halt[0] in (Reason.BUDGET_EXCEEDED, Reason.UNIT_CAP_EXCEEDED):
        return step.halt
    problem = next((outcome for outcome in outcomes if outcome is not None and outcome.of_step), None)
    return (
        None if problem is None or problem.reason is None else (problem.reason, problem.error or problem.reason.value)
    )


def summary_of(step: StepState, outcomes: list[Outcome | None]) -> str:
    """What the step did, for people (akm facts 14)."""
    made = sum(1 for outcome in outcomes if outcome is not None)
    good = sum(1 for unit in step.units.values() if unit.status is Status.SUCCEEDED)
    bad = [(unit, unit.attempt) for unit in step.units.values() if unit.status is Status.FAILED and unit.attempt]
    text = (
        f'Executed {made} unit(s) for step "{step.id}" via workflow orchestration: '
        f"{good} succeeded, {made - good} failed."
    )
    if step.fans_out and step.count == 0:
        text += " The list was empty."
    if bad:
        recorded = " (recorded, on_error: continue)" if step.plan.on_error is OnError.CONTINUE else ""
        names = ", ".join(
            f"{a.unit} ({a.outcome.reason})" for _, a in sorted(bad, key=lambda b: b[0].index)[:20] if a.outcome
        )
        first = min(bad, key=lambda b: b[0].index)[1]
        text += f" Failures{recorded}: {names}{', …' if len(bad) > 20 else ''}."
        if first.outcome is not None and first.outcome.diagnostic:
            text += f" First failure diagnostic ({first.unit}): {first.outcome.diagnostic}"
    return text
