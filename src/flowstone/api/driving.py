"""Drives a published run as far as it gets: its plan, its workshop, and the check that its source is the same."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

import msgspec

from flowstone.api.granting import granted
from flowstone.api.pinning import check_pins
from flowstone.errors import DigestMismatch, SourceError
from flowstone.ports.dialect import Given
from flowstone.run.events import Event
from flowstone.run.record import RunRow
from flowstone.wiring import RunWorkshop, Wiring

if TYPE_CHECKING:
    from flowstone.api.session import Session
    from flowstone.drivers.drive import DriveOptions, DriveReport
    from flowstone.plan.model import Plan
    from flowstone.ports.observer import Observer
    from flowstone.run.state import State


def drive(
    session: Session,
    run_id: str,
    given: Given,
    *,
    options: DriveOptions,
    observer: Observer | None = None,
    on_event: Callable[[Event], None] | None = None,
    reopen: bool = False,
    lines: bool = False,
) -> DriveReport:
    """Drive a run as far as it gets; `reopen` takes up one that failed or is held.

    `on_event` is called with each event after its commit; `lines` has the observer told every
    line that a unit prints. LeaseHeld when another process drives the run. A run under a limit of the
    configuration waits for its turn first.
    """
    from flowstone.api.limits import Interrupted, turn
    from flowstone.api.notifying import notify
    from flowstone.drivers.drive import drive_run
    from flowstone.drivers.publishing import Publisher

    store, full = session.wiring.store_of(run_id)
    watcher = Publisher(session.wiring.project, observer, on_event)
    try:
        with turn(session, store.load(full).record, watcher.warned, cancel_older=options.cancel_older):
            report = drive_run(
                store,
                full,
                partial(plan_of, session),
                lambda row, state: _workshop(session.wiring, row, state, given, lines, options.run_width),
                msgspec.structs.replace(options, reopen=reopen),
                session.wiring.clock,
                watcher,
                session.held.pop(full, None),
            )
    except Interrupted as end:
        return _never_begun(session, full, str(end.args[0]))
    if problem := notify(session, report):
        watcher.warned(problem)
        report.warnings.append(problem)
    return report


def _never_begun(session: Session, run_id: str, cause: str) -> DriveReport:
    """What to report of a run whose waiting was interrupted: it stands as it stood."""
    from flowstone.drivers.drive import DriveReport
    from flowstone.drivers.journal import replay
    from flowstone.drivers.local import DriveEnd, Halt
    from flowstone.plan.codec import decode_plan

    store, full = session.wiring.store_of(run_id, readonly=True)
    row = store.load(full)
    state = replay(store, full, decode_plan(row.record.plan, check=False), whole=False)
    return DriveReport(row, state, DriveEnd(Halt.INTERRUPTED, cause=cause), [], [])


def plan_of(session: Session, row: RunRow) -> Plan:
    """The plan that a run is driven by: the frozen one, or that of its unchanged source."""
    from flowstone.plan.codec import decode_plan
    from flowstone.plan.model import ResumeRule

    fresh = session.plans.get(row.record.id)
    if fresh is not None:
        return fresh
    stored = decode_plan(row.record.plan)
    if row.record.source_path is None or stored.policies.resume is ResumeRule.FROZEN:
        return stored
    if stored.policies.resume is ResumeRule.PINNED:
        _check_pins(session, row, stored)
        return stored
    check_source(session, row.record.id)
    return session.compiling.freeze(session.compiling.sound(row.record.source_path)).plan


def check_source(session: Session, run_id: str, path: str | None = None) -> bool:
    """Whether the source of a run (or the file at `path`) is another one than it was started from.

    DigestMismatch where the plan allows a resume only with the same source, or the same pinned files.
    """
    from flowstone.plan.codec import decode_plan
    from flowstone.plan.model import ResumeRule

    store, full = session.wiring.store_of(run_id, readonly=True)
    row = store.load(full)
    plan = decode_plan(row.record.plan, check=False)
    if plan.policies.resume is ResumeRule.PINNED and row.record.source_path is not None:
        _check_pins(session, row, plan)
        return False
    if plan.policies.resume is not ResumeRule.SAME_SOURCE:
        return source_changed(session.wiring, row)
    place = session.wiring.place(path) if path is not None else row.record.source_path
    found = session.wiring.source(place).digest if place is not None else row.record.source_digest
    if found != row.record.source_digest:
        raise _changed(full, "workflow", str(row.record.source_digest), str(found))
    if place is not None and len(plan.read_set) > 1:
        for before, now in zip(plan.read_set, session.compiling.sound(place).compiled.plan.read_set, strict=False):
            if before.digest != now.digest:
                raise _changed(full, f"{before.path}: workflow", before.digest, now.digest)
    return False


def _check_pins(session: Session, row: RunRow, plan: Plan) -> None:
    folder, advice = os.path.dirname(row.record.source_path or ""), "a resumed run executes the files it started with"
    check_pins(session.wiring, plan, folder, f"resume {row.record.id}", f"{advice}: restore what changed")


def source_changed(wiring: Wiring, row: RunRow) -> bool:
    """Whether the source that a run was started from is another one now (or is gone)."""
    path = row.record.source_path
    if path is None:
        return False
    try:
        return wiring.source(path).digest != row.record.source_digest
    except SourceError:
        return True


def _workshop(
    wiring: Wiring, row: RunRow, state: State, given: Given, lines: bool, run_width: int | None
) -> RunWorkshop:
    from flowstone.formats.registry import dialect_of

    dialect = dialect_of(row.record.dialect)
    if state.started_at is None and (given.texts or given.values):
        resolved = dialect.resolve(state.plan, given)
    else:
        resolved = dialect.resume(state.plan, given, row.record.params or {})
    given = granted(wiring, given, state.plan)
    connections = dialect.connections(state.plan, given)
    values = (value for fields in given.connections.values() for value in fields.values())
    bound = wiring.bound_values(state.plan)
    secrets = [*resolved.secrets, *values, *wiring.engine_keys(state.plan), *bound]
    wiring.write_shims(row, state.plan)
    return RunWorkshop(wiring, row, resolved.params, connections, secrets, lines, run_width)


def _changed(run_id: str, what: str, before: str, now: str) -> DigestMismatch:
    return DigestMismatch(
        f"resume {run_id}: {what} digest changed (sha256:{before} → sha256:{now}) — "
        "a resumed run must execute the file it started with",
        hint="Restore the file to resume, or start a new run of the changed file.",
    )
