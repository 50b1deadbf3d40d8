"""Status: a run's row and its state as the answer of status, resume and abandon."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from flowstone.plan.model import Step
from flowstone.run.events import Status
from flowstone.run.record import RunRow
from flowstone.run.state import State, StepState
from flowstone.views.evidence import Peek, evidence_of, no_peek
from flowstone.views.moments import iso
from flowstone.views.runs import check_in, run_object
from flowstone.views.units import unit_rows
from flowstone.views.usage import budget_object, budget_warnings, run_usage, step_usage, usage_object
from flowstone.views.words import Word


def status_view(
    row: RunRow,
    state: State,
    word: Word,
    now: int,
    *,
    verb: str = "status",
    units: bool = False,
    warnings: Sequence[str] = (),
    peek: Peek = no_peek,
) -> dict[str, Any]:
    """The envelope of one run (akm facts 21.3); `verb` names its shape, `now` tells what is stale."""
    run = run_object(row, word, state.plan.ir_version)
    view: dict[str, Any] = {
        "run": run,
        "workflow": {
            "ref": row.record.ref,
            "title": row.record.title,
            "steps": [
                {**step_object(step, word, peek), **usage_object(step_usage(state, step))} for step in state.order
            ],
        },
        **usage_object(run_usage(state)),
        **budget_object(state),
    }
    if units:
        view["units"] = unit_rows(state, word, now)
    directive = check_in(row.record, row.summary, now)
    if directive is not None:
        view["checkin"] = run["checkin"] = directive
    told = [*warnings, *budget_warnings(state)]
    if told:
        view["warnings"] = told
    return {**view, "shape": f"workflow-{verb}", "schemaVersion": 1}


def step_object(step: StepState, word: Word, peek: Peek = no_peek) -> dict[str, Any]:
    """A step with what it is, where it stands and what came of it; absent parts are left out."""
    shown = step_header(step.place, step.plan)
    shown["status"] = word(step.status)
    optional = {
        "notes": _notes(step),
        "evidence": evidence_of(step, peek),
        "summary": step.summary,
        "completedAt": iso(step.closed_at) if step.status is not Status.OPEN else None,
    }
    shown.update((key, value) for key, value in optional.items() if value is not None)
    return shown


def step_header(place: int, step: Step) -> dict[str, Any]:
    """What a step is called and does; a route has instructions only where prose exists."""
    shown: dict[str, Any] = {"id": step.id, "title": step.name or step.id}
    if step.instructions is not None:
        shown["instructions"] = step.instructions
    if step.gate is not None and step.gate.rubric:
        shown["completionCriteria"] = [step.gate.rubric]
    shown["sequenceIndex"] = place
    return shown


def _notes(step: StepState) -> str | None:
    """Why a step was skipped, or what holds or failed it."""
    note = (step.detail or {}).get("note")
    if note is None and step.status in (Status.FAILED, Status.HELD, Status.UPSTREAM_FAILED):
        return step.error
    return note
