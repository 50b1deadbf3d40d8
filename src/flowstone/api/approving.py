"""A person's answer to an approval: kept beside the journal, where the driver finds it, alive or yet to come."""

from __future__ import annotations

from typing import TYPE_CHECKING

from flowstone.api.model import RunView
from flowstone.errors import IllegalTransition
from flowstone.plan.units import ApprovalSpec
from flowstone.run.asking import ANSWER, answer, last_asking
from flowstone.run.events import Status

if TYPE_CHECKING:
    from flowstone.api.session import Session
    from flowstone.plan.model import Plan
    from flowstone.run.asking import Asking
    from flowstone.run.outcome import Outcome
    from flowstone.run.state import StepState


def decide_approval(
    session: Session, run_id: str, name: str, *, approved: bool, by: str, note: str | None
) -> RunView | None:
    """Answer the approval `name`, or the one that the step `name` waits for; None where there is none.

    The lease is not needed: a driver that waits finds the answer, and one that takes the run up later
    does. IllegalTransition for a step that waits for no answer (any more).
    """
    from flowstone.drivers.journal import replay
    from flowstone.plan.codec import decode_plan

    store, full = session.wiring.store_of(run_id)
    row = store.load(full)
    plan = decode_plan(row.record.plan)
    found = _approval(plan, name)
    if found is None:
        return None
    step_id, spec = found
    state = replay(store, full, plan, whole=False)
    asking = last_asking(store.read(full), step_id)
    if asking is None or state.steps[step_id].status is not Status.OPEN or not state.active:
        raise _not_asked(name, state.steps[step_id])
    now = session.wiring.clock.now_ms()
    _in_time(name, spec, asking, now)
    mine = answer(approved=approved, by=by, at=now, note=note)
    standing = store.record_outcome(full, asking.unit, asking.number, ANSWER, mine)
    if standing != mine:
        raise _decided_before(name, standing)
    return RunView(row, state, store.driver_of(full))


def _approval(plan: Plan, name: str) -> tuple[str, ApprovalSpec] | None:
    """The approval with this id, or the one that guards the step of this name."""
    for step in plan.steps:
        spec = step.unit.spec if step.unit is not None else None
        if isinstance(spec, ApprovalSpec) and name in (step.id, spec.guards):
            return step.id, spec
    return None


def _not_asked(name: str, step: StepState) -> IllegalTransition:
    told = {Status.PENDING: "it has not been reached yet", Status.SUCCEEDED: "it was approved"}
    why = told.get(step.status, step.error or f"it is {step.status}")
    return IllegalTransition(f'Step "{name}" waits for no decision: {why}.', code="STEP_NOT_DECIDABLE")


def _in_time(name: str, spec: ApprovalSpec, asking: Asking, now: int) -> None:
    if spec.timeout_ms is not None and now >= asking.since + spec.timeout_ms:
        raise IllegalTransition(
            f'Step "{name}" waits for no decision any more: its time is over.',
            code="STEP_NOT_DECIDABLE",
            hint="The run goes on by what the job says for that when it is driven.",
        )


def _decided_before(name: str, standing: Outcome) -> IllegalTransition:
    value = standing.value if isinstance(standing.value, dict) else {}
    who = f" by {value['by']} at {value['at']}" if value else ""
    word = "approved" if standing.ok else "rejected"
    return IllegalTransition(f'Step "{name}" was already {word}{who}.', code="STEP_NOT_DECIDABLE")
