"""Publishes a run: compiles, resolves what was given, freezes, guards the source, and writes the record of the run."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING

from flowstone.api.granting import granted
from flowstone.api.model import Started, Workflow
from flowstone.api.reusing import Reuse
from flowstone.errors import IllegalTransition
from flowstone.ports.dialect import Dialect, Given, Resolved
from flowstone.run.record import RunRecord, RunSummary
from flowstone.source.remote import is_remote
from flowstone.wiring import require_dispatchers

if TYPE_CHECKING:
    from flowstone.api.session import Session
    from flowstone.freeze.frozen import Frozen
    from flowstone.plan.model import Plan
    from flowstone.ports.store import Store


def start(session: Session, target: str, given: Given, *, new: bool = True, reuse: str | None = None) -> Started:
    """Publish a new run of a workflow, or (with `new` False) take up its active run of this scope.

    `reuse` names an earlier run whose finished steps stand in the new one.
    """
    workflow = session.compiling.sound(target)
    store = session.wiring.store_for(workflow.compiled.plan.dialect)
    if not new and (active := _active_run(session, store, workflow.ref)) is not None:
        if given.texts or given.values:
            raise IllegalTransition(
                f"Workflow parameter flags can only be set on a new run; {workflow.ref} is already active.",
                code="INVALID_FLAG_VALUE",
                hint="Continue it without flags, abandon it, or start another one with --new.",
            )
        return Started(active, resumed=True)
    return publish(session, workflow, None, given, reuse)


def publish(
    session: Session, workflow: Workflow, planned: Frozen | None, given: Given, reuse: str | None = None
) -> Started:
    """Publish a new run of a sound workflow, or of a plan that was `planned` and frozen before."""
    from flowstone.formats.registry import dialect_of

    plan: Plan = workflow.compiled.plan if planned is None else planned.plan
    dialect = dialect_of(plan.dialect)
    store = session.wiring.store_for(plan.dialect)
    resolved = dialect.resolve(plan, given)
    dialect.connections(plan, granted(session.wiring, given, plan))
    frozen = session.compiling.freeze(workflow) if planned is None else planned
    require_dispatchers(frozen.plan)
    seeds = None if reuse is None else Reuse(session, reuse, frozen.plan, resolved)
    record = _record(session, workflow, frozen, dialect, resolved)
    session.compiling.unchanged(workflow, frozen.plan)
    # Held from before it can be seen until its drive ends, so that nobody else takes it in between.
    session.held[record.id] = store.lease(record.id, f"pid {os.getpid()}")
    store.create(record, RunSummary(updated_at=record.created_at, current_step=frozen.plan.steps[0].id))
    session.plans[record.id] = frozen.plan
    if seeds is not None:
        _seed(store, record, frozen.plan, seeds)
    told = (*frozen.warnings, *(notice.message for notice in frozen.notices))
    return Started(record.id, (*resolved.warnings, *told))


def _seed(store: Store, record: RunRecord, plan: Plan, seeds: Reuse) -> None:
    """Begin the journal with what an earlier run did, in one commit."""
    from flowstone.drivers.journal import Journal
    from flowstone.run.fold import fold
    from flowstone.run.state import State

    state, events = State(record.id, plan), seeds.events(record.created_at)
    for event in events:
        fold(state, event)
    if events:
        Journal(store, record.id).append(events, state)


def _record(session: Session, workflow: Workflow, frozen: Frozen, dialect: Dialect, resolved: Resolved) -> RunRecord:
    from flowstone.config.environment import agent_identity

    clock = session.wiring.clock
    harness, agent_session = agent_identity(session.wiring.env)
    return RunRecord(
        id=dialect.run_id(frozen.plan, clock.new_id(), clock.now_ns()),
        dialect=dialect.name,
        ref=workflow.ref,
        title=frozen.plan.title or frozen.plan.name,
        scope=session.wiring.scope.key,
        cwd=session.wiring.cwd,
        plan=_storable(frozen, resolved.secrets),
        plan_hash=frozen.hash,
        created_at=clock.now_ms(),
        source_path=session.wiring.place(workflow.source.path),
        source_digest=workflow.source.digest,
        params=resolved.stored,
        provenance=session.wiring.fetch(workflow.path).origin.provenance if is_remote(workflow.path) else (),
        harness=harness,
        session=agent_session,
    )


def _active_run(session: Session, store: Store, ref: str) -> str | None:
    rows = store.find(ref=ref, scope=session.wiring.scope.key, active_only=True, limit=1)
    return next((row.record.id for row in rows), None)


def _storable(frozen: Frozen, secrets: Sequence[str]) -> str:
    """The plan's text for the store. A plan that a resume makes anew is stored without secrets."""
    from flowstone.plan.codec import encode_plan
    from flowstone.plan.model import ResumeRule
    from flowstone.plan.scrub import scrubbed
    from flowstone.redaction import Redactor

    if not secrets or frozen.plan.policies.resume is not ResumeRule.SAME_SOURCE:
        return frozen.text
    return encode_plan(scrubbed(frozen.plan, Redactor(secrets).text))
