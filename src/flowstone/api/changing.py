"""Looks at a run and changes it without driving it: reopens it, decides a gate in a person's name, gives it up."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TYPE_CHECKING

from flowstone.api.model import RunView
from flowstone.plan.bounds import CHILD_LEVELS
from flowstone.plan.model import ChildRule
from flowstone.run.events import Event, RunStatus
from flowstone.run.record import NestedRun

if TYPE_CHECKING:
    from flowstone.api.session import Session
    from flowstone.ports.store import Store
    from flowstone.run.state import State

Change = Callable[["State", int], tuple[Event, ...]]


def status(session: Session, run_id: str) -> RunView:
    """A run as it stands, with those that it nests."""
    from flowstone.drivers.journal import replay
    from flowstone.plan.codec import decode_plan

    store, full = session.wiring.store_of(run_id, readonly=True)
    row = store.load(full)
    state = replay(store, full, decode_plan(row.record.plan, check=False), whole=False)
    levels = CHILD_LEVELS if state.plan.policies.children is ChildRule.BY_HAND else 1
    return RunView(row, state, store.driver_of(full) if state.active else None, _nested(store, full, levels))


def _nested(store: Store, run_id: str, levels: int) -> tuple[NestedRun, ...]:
    """The tree of nested runs, so many levels of it; a language without the rule may have thousands on one."""
    rows = list(store.find(parent=run_id))[::-1]
    return tuple(NestedRun(row, _nested(store, row.record.id, levels - 1) if levels > 1 else ()) for row in rows)


def resume(session: Session, run_id: str) -> RunView:
    """Reopen a run that failed or is held, without driving it; an active one stays as it is."""
    from flowstone.drivers.transitions import reopened

    def change(state: State, now: int) -> tuple[Event, ...]:
        event = reopened(state, now)
        return () if event is None else (event,)

    return transition(session, run_id, change)


def decide(session: Session, run_id: str, step: str, *, approved: bool, by: str, note: str | None = None) -> RunView:
    """Answer an approval, or take the judge's place for a step that its gate rejected for good or left open.

    The decision is journaled with who and when; a drive (`drive(run_id)`) goes on from it. A live
    driver that waits for an approval finds the answer by itself.
    """
    from flowstone.api.approving import decide_approval
    from flowstone.drivers.transitions import decided
    from flowstone.run.events import StepDecided

    def change(state: State, now: int) -> tuple[Event, ...]:
        return decided(state, step, StepDecided(step, now, approved, by, note))

    answered = decide_approval(session, run_id, step, approved=approved, by=by, note=note)
    if answered is not None:
        return answered
    return transition(session, run_id, change)


def abandon(session: Session, run_id: str) -> RunView:
    """Give a run up, and those that it nests. IllegalTransition for one that has ended."""
    from flowstone.drivers.transitions import abandoned

    def change(state: State, now: int) -> tuple[Event, ...]:
        return (abandoned(state, now),)

    view = transition(session, run_id, change)
    store, waiting = session.wiring.store_for(view.row.record.dialect), [view.row.record.id]
    while waiting:
        for child in store.find(parent=waiting.pop()):
            waiting.append(child.record.id)
            if child.summary.status in (RunStatus.ACTIVE, RunStatus.HELD):
                transition(session, child.record.id, change, nested=True)
    return view


def transition(
    session: Session, run_id: str, change: Callable[[State, int], tuple[Event, ...]], *, nested: bool = False
) -> RunView:
    from flowstone.drivers.journal import Journal, replay
    from flowstone.drivers.transitions import record, refuse_child
    from flowstone.plan.codec import decode_plan

    store, full = session.wiring.store_of(run_id)
    lease = session.held.pop(full, None) or store.lease(full, f"pid {os.getpid()}")
    try:
        row = store.load(full)
        plan = decode_plan(row.record.plan)
        if not nested:
            refuse_child(row.record, plan)
        state = replay(store, full, plan, whole=False)
        events = change(state, session.wiring.clock.now_ms())
        if events:
            record(state, Journal(store, full, state.seq), *events)
        return RunView(store.load(full), state)
    finally:
        lease.release()
