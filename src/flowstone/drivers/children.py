"""Child runs in the loop of their parent's drive: found or started, driven, and stopped with it.

A child has a record, a journal and a lease of its own; only what it may do at one time is bounded by
its own plan. So a parent whose only slot waits for a child never holds the child up.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, Protocol, assert_never

from flowstone.drivers.drive import LEASE_WAIT_MS, Workshop
from flowstone.drivers.journal import Journal, replay
from flowstone.drivers.local import DriveEnd, LocalDriver
from flowstone.drivers.transitions import reopened
from flowstone.errors import InputError, LeaseHeld
from flowstone.plan.codec import encode_plan, plan_hash
from flowstone.plan.model import Plan
from flowstone.plan.scrub import scrubbed
from flowstone.plan.units import TakeUp
from flowstone.ports.children import ChildEnd, Invocation
from flowstone.ports.dialect import Dialect, Given, Resolved
from flowstone.ports.observer import ChildObserver, Observer, lines_of
from flowstone.ports.store import Lease, Store
from flowstone.run.events import DriverStarted, Event, RunStatus, Status
from flowstone.run.record import RunRecord, RunRow, RunSummary
from flowstone.run.state import State, StepState
from flowstone.scheduler.commands import Facts
from flowstone.source.remote import is_remote
from flowstone.values import canonical_json, sha256_hex

BUSY_S = 0.05
"""How long to wait before a child that somebody holds is asked for again."""


class Host(Protocol):
    """What child runs need of their parent's drive; built by the composition root."""

    store: Store
    clock: Any
    dialect: Dialect
    parent: RunRow
    connections: dict[str, Any]
    run_width: int | None

    def redact(self, value: Any) -> Any:
        """Scrub a JSON value of the secrets of the parent."""

    def workshop(self, row: RunRow, plan: Plan, resolved: Resolved, connections: dict[str, Any]) -> Workshop:
        """The dispatchers of a child; its secrets are those of the parent too."""

    def publish(self, state: State, events: Sequence[Event]) -> tuple[str, ...]:
        """Write the documented files of a child; returns warnings."""


class LocalChildRuns:
    """Implements `ports.children.ChildRuns` for the drive of one parent run."""

    def __init__(self, host: Host, observer: Observer) -> None:
        self._host = host
        self._observer = observer

    async def perform(self, invocation: Invocation) -> ChildEnd:
        host, plan = self._host, invocation.plan
        given = Given(values=invocation.arguments, connections=_granted(invocation, host.connections))
        try:
            resolved = host.dialect.resolve(plan, given)
            connections = host.dialect.connections(plan, given)
        except InputError as error:
            return ChildEnd(None, RunStatus.ABANDONED, error=host.redact(error.message))
        row = self._taken_up(invocation, resolved)
        lease = await self._lease(row.record.id)
        if lease is None:
            return ChildEnd(row.record.id, RunStatus.ACTIVE, error=f"run {row.record.id} is held by another process")
        try:
            state = replay(host.store, row.record.id, plan)
            if state.status in (RunStatus.ACTIVE, RunStatus.FAILED, RunStatus.HELD):
                workshop = host.workshop(row, plan, resolved, connections)
                await self._drive(invocation, row, state, workshop, lease)
            return ChildEnd(row.record.id, state.status, state.outputs, _first_error(state))
        finally:
            lease.release()

    def _taken_up(self, invocation: Invocation, resolved: Resolved) -> RunRow:
        """The run that an earlier drive began for this invocation, else a new one.

        The key holds the inputs: a step that is run again with others starts another child.
        """
        host = self._host
        stored = host.redact(resolved.stored)
        key = sha256_hex(canonical_json([invocation.unit, invocation.digest, stored]))
        found = [
            row
            for row in host.store.find(parent=host.parent.record.id)
            if (row.record.invocation_key or "").partition(".")[0] == key
        ]
        if found and _goes_on(invocation, found[0].summary.status):
            return found[0]
        record = self._record(invocation, stored, resolved, f"{key}.{len(found)}")
        host.store.create(record, RunSummary(updated_at=record.created_at, current_step=invocation.plan.steps[0].id))
        return RunRow(record, RunSummary())

    def _record(self, invocation: Invocation, stored: Any, resolved: Resolved, key: str) -> RunRecord:
        host, plan, parent = self._host, invocation.plan, self._host.parent.record
        clock = host.clock
        path = plan.source.path if plan.source is not None else invocation.ref
        return RunRecord(
            id=host.dialect.run_id(plan, clock.new_id(), clock.now_ns()),
            dialect=plan.dialect,
            ref=path,
            title=plan.title or plan.name,
            scope=parent.scope,
            cwd=parent.cwd,
            plan=encode_plan(scrubbed(plan, self._scrubber(resolved))),
            plan_hash=plan_hash(encode_plan(plan)),
            created_at=clock.now_ms(),
            source_path=path if is_remote(path) else os.path.normpath(os.path.join(_folder_of(parent), invocation.ref)),
            source_digest=invocation.digest,
            params=stored,
            provenance=invocation.provenance or parent.provenance,
            parent_run=parent.id,
            parent_unit=invocation.unit,
            invocation_key=key,
            harness=parent.harness,
            session=parent.session,
        )

    def _scrubber(self, resolved: Resolved) -> Callable[[str], str]:
        from flowstone.redaction import Redactor

        own = Redactor(resolved.secrets)
        return lambda text: own.text(str(self._host.redact(text)))

    async def _lease(self, run_id: str) -> Lease | None:
        """The child's lease; a dead driver's commands are waited for without holding up the loop."""
        deadline = time.monotonic() + LEASE_WAIT_MS / 1000
        while True:
            try:
                return self._host.store.lease(run_id, f"pid {os.getpid()}")
            except LeaseHeld:
                if time.monotonic() >= deadline:
                    return None
            await asyncio.sleep(BUSY_S)

    async def _drive(
        self, invocation: Invocation, row: RunRow, state: State, workshop: Workshop, lease: Lease
    ) -> DriveEnd:
        host, now = self._host, self._host.clock.now_ms()
        watcher = _ChildWatcher(host, self._observer, invocation.step)
        limits = invocation.plan.limits
        facts = Facts(
            params=workshop.params,
            connections=workshop.connections,
            run_width=limits.run_width or host.run_width or limits.default_run_width,
        )
        event = reopened(state, now)
        first: list[Event] = [DriverStarted(now, f"pid {os.getpid()}")]
        first = first if event is None else [event, *first]
        dispatcher_of = workshop.open(lease, watcher)
        journal = Journal(host.store, row.record.id, state.seq)
        driver = LocalDriver(state, journal, facts, dispatcher_of, host.clock, watcher, workshop.redact)

        async def drive() -> DriveEnd:
            try:
                return await driver.drive(first)
            finally:
                await workshop.close()

        return await _to_its_end(driver, drive())


def _folder_of(parent: RunRecord) -> str:
    """Where the paths start from that a workflow nests others by; a fetched one lies where it was started."""
    path = parent.source_path
    return parent.cwd if path is None or is_remote(path) else os.path.dirname(path)


def _granted(invocation: Invocation, connections: dict[str, Any]) -> dict[str, Any]:
    """What the parent has of the connections that the child declares, under the child's names."""
    theirs = {own.name: own.name for own in invocation.plan.connections} | dict(invocation.grants)
    return {own: connections[name] for own, name in theirs.items() if name in connections}


def _goes_on(invocation: Invocation, status: RunStatus) -> bool:
    """Whether the newest run of an invocation is taken up, and no other one started."""
    if status is RunStatus.ABANDONED:
        return False
    match invocation.take_up:
        case TakeUp.ALWAYS:
            return True
        case TakeUp.FIRST_ATTEMPT:
            return invocation.number == 0
        case TakeUp.UNFINISHED:
            return invocation.number == 0 and status in (RunStatus.ACTIVE, RunStatus.SUCCEEDED)
        case _:
            assert_never(invocation.take_up)


class _ChildWatcher:
    """Publishes the files of a child, and tells the parent's observer with the step in front."""

    def __init__(self, host: Host, observer: Observer, step: str) -> None:
        self._host = host
        self._observer = observer
        self._step = step
        self._told = observer if isinstance(observer, ChildObserver) else None
        self._told_lines = lines_of(observer)

    def recorded(self, state: State, events: Sequence[Event]) -> None:
        for text in self._host.publish(state, events):
            self._observer.warned(text)
        if self._told is not None:
            self._told.nested(self._step, state, events)

    def nested(self, path: str, state: State, events: Sequence[Event]) -> None:
        if self._told is not None:
            self._told.nested(f"{self._step}/{path}", state, events)

    def line(self, step: str, unit: str, text: str) -> None:
        self._observer.line(f"{self._step}/{step}", f"{self._step}/{unit}", text)

    def lines(self, step: str, unit: str, texts: Sequence[str]) -> None:
        self._told_lines(f"{self._step}/{step}", f"{self._step}/{unit}", texts)

    def warned(self, text: str) -> None:
        self._observer.warned(f"{self._step}: {text}")


async def _to_its_end(driver: LocalDriver, drive: Coroutine[Any, Any, DriveEnd]) -> DriveEnd:
    """Await a drive; when this task is cancelled the driver is stopped first, however often."""
    task: asyncio.Task[DriveEnd] = asyncio.get_running_loop().create_task(drive)
    cancelled: asyncio.CancelledError | None = None
    while not task.done():
        try:
            await asyncio.shield(task)
        except asyncio.CancelledError as error:
            cancelled = cancelled or error
            driver.stop("stopped with its parent")
        except BaseException:
            if cancelled is None:
                raise
    if cancelled is not None:
        raise cancelled
    return task.result()


def _first_error(state: State) -> str | None:
    """The error of the step that failed first, with its name; else that of the run."""
    blocked = any(step.status is Status.UPSTREAM_FAILED for step in state.order)
    bad: list[StepState] = [
        step for step in state.order if step.status is Status.FAILED and (blocked or not step.plan.tolerated)
    ]
    if not bad:
        return state.error
    first = min(bad, key=lambda step: (step.closed_at or 0, step.place))
    return f"step {first.id}: {first.error}"
