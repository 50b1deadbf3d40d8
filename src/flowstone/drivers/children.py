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

import msgspec

from flowstone.drivers.drive import LEASE_WAIT_MS, Workshop
from flowstone.drivers.journal import Journal, replay
from flowstone.drivers.local import DriveEnd, Halt, LocalDriver
from flowstone.drivers.transitions import reopened
from flowstone.errors import InputError, LeaseHeld
from flowstone.plan.codec import encode_plan, plan_hash
from flowstone.plan.model import ChildRule, Plan, ResumeRule
from flowstone.plan.scrub import scrubbed
from flowstone.plan.units import TakeUp
from flowstone.ports.children import Invocation
from flowstone.ports.dialect import Dialect, Given, Resolved, StoppedChild
from flowstone.ports.observer import ChildObserver, Observer, lines_of
from flowstone.ports.store import Lease, Store
from flowstone.run.events import DriverStarted, Event, RunStatus, Status
from flowstone.run.outcome import Outcome, Reason
from flowstone.run.record import RunRecord, RunRow, RunSummary
from flowstone.run.state import State, StepState
from flowstone.run.usage import Used
from flowstone.scheduler.commands import Facts
from flowstone.source.remote import is_remote
from flowstone.values import canonical_json, sha256_hex

STOPPED = frozenset({RunStatus.FAILED, RunStatus.HELD, RunStatus.ABANDONED})
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

    @property
    def host_width(self) -> int | None:
        """How many units this machine runs at a time; read for plans that are under its cap."""

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

    async def perform(self, invocation: Invocation) -> Outcome:
        host, plan = self._host, invocation.plan
        given = Given(values=invocation.arguments, connections=_granted(invocation, host.connections))
        try:
            resolved = host.dialect.resolve(plan, given)
            connections = host.dialect.connections(plan, given)
        except InputError as error:
            return self._stopped(invocation, Reason.CHILD_PUBLISH_FAILED, error=host.redact(error.message))
        row = self._taken_up(invocation, resolved)
        if plan.policies.children is ChildRule.BY_HAND and row.summary.status in STOPPED:
            return self._outcome(invocation, row, replay(host.store, row.record.id, plan), None)
        lease = await self._lease(row.record.id)
        if lease is None:
            text = f"run {row.record.id} is held by another process"
            return self._stopped(invocation, Reason.CHILD_BUSY, row.record.id, error=text)
        try:
            state = replay(host.store, row.record.id, plan)
            before = _used(state)
            end = None
            if state.status in (RunStatus.ACTIVE, RunStatus.FAILED, RunStatus.HELD):
                workshop = host.workshop(row, plan, resolved, connections)
                end = await self._drive(invocation, row, state, workshop, lease)
            return _charged(self._outcome(invocation, row, state, end), _used(state), before)
        finally:
            lease.release()

    def _outcome(self, invocation: Invocation, row: RunRow, state: State, end: DriveEnd | None) -> Outcome:
        """What a child that is not driven any further means for the unit of its parent."""
        run, host = row.record.id, self._host
        if state.status is RunStatus.SUCCEEDED:
            outputs = host.dialect.bare_exports(run) if state.outputs is None else state.outputs
            return Outcome(value=outputs, child_run=run)
        refused = end is not None and end.halt is Halt.REFUSED
        step = stopping_step(state)
        error = end.problem if end is not None and refused else _error(state, step)
        if state.status in (RunStatus.FAILED, RunStatus.ABANDONED) or refused:
            return self._stopped(invocation, Reason.CHILD_FAILED, run, step, error)
        return self._stopped(invocation, Reason.CHILD_BLOCKED, run, step, error)

    def _stopped(
        self,
        invocation: Invocation,
        reason: Reason,
        run: str | None = None,
        step: StepState | None = None,
        error: str | None = None,
    ) -> Outcome:
        host = self._host
        held = _held_below(host.store, run) if run is not None and reason is Reason.CHILD_BLOCKED else ()
        name = step.id if step is not None else None
        child = StoppedChild(invocation.ref, reason, host.parent.record.id, run, name, error, held)
        text = host.dialect.stopped(child)
        ran = reason in (Reason.CHILD_FAILED, Reason.CHILD_BLOCKED)
        return Outcome(reason=reason, error=text, diagnostic=text, ran=ran, child_run=run)

    def _taken_up(self, invocation: Invocation, resolved: Resolved) -> RunRow:
        """The run that an earlier drive began for this invocation, else a new one."""
        host, plan = self._host, invocation.plan
        by_hand = plan.policies.children is ChildRule.BY_HAND
        stored = resolved.stored if plan.policies.resume is ResumeRule.FROZEN else host.redact(resolved.stored)
        key = self._key(invocation, stored)
        found = [
            row
            for row in host.store.find(parent=host.parent.record.id)
            if (row.record.invocation_key or "").partition(".")[0] == key
        ]
        if found and (by_hand or _goes_on(invocation, found[0].summary.status)):
            return found[0]
        record = self._record(invocation, stored, resolved, f"{key}.{len(found)}")
        host.store.create(record, RunSummary(updated_at=record.created_at, current_step=plan.steps[0].id))
        return RunRow(record, RunSummary())

    def _key(self, invocation: Invocation, stored: Any) -> str:
        """What one child has for itself below its parent: by the unit's input hash, else by its inputs.

        A step that is run again with others starts another child, and so does one that is run afresh.
        """
        what: Any = [invocation.unit, invocation.digest, stored]
        prefix = ""
        if invocation.hash:
            prefix = invocation.plan.policies.hashing.child_prefix
            names = ("parentRunId", "parentUnitId", "unitInputHash")
            what = dict(zip(names, (self._host.parent.record.id, invocation.unit, invocation.hash), strict=True))
        return sha256_hex(prefix + canonical_json([what, invocation.afresh] if invocation.afresh else what))

    def _record(self, invocation: Invocation, stored: Any, resolved: Resolved, key: str) -> RunRecord:
        host, plan, parent = self._host, invocation.plan, self._host.parent.record
        clock = host.clock
        path = plan.source.path if plan.source is not None else invocation.ref
        frozen = plan.policies.resume is ResumeRule.FROZEN
        return RunRecord(
            id=host.dialect.run_id(plan, clock.new_id(), clock.now_ns()),
            dialect=plan.dialect,
            ref=invocation.ref if frozen else path,
            title=plan.title or plan.name,
            scope=parent.scope,
            cwd=parent.cwd,
            plan=encode_plan(plan if frozen else scrubbed(plan, self._scrubber(resolved))),
            plan_hash=plan_hash(encode_plan(plan)),
            created_at=clock.now_ms(),
            source_path=os.path.join(parent.cwd, path) if frozen else _place_of(path, parent, invocation.ref),
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
        """The child's lease, None when somebody drives it; a dead driver's commands are waited for in the loop."""
        deadline = time.monotonic() + LEASE_WAIT_MS / 1000
        while True:
            try:
                return self._host.store.lease(run_id, f"pid {os.getpid()}")
            except LeaseHeld:
                if time.monotonic() >= deadline or self._host.store.driver_of(run_id) is not None:
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
            host_width=host.host_width if limits.host_capped else None,
            run_width=limits.run_width or host.run_width or limits.default_run_width,
        )
        event = reopened(state, now) if state.plan.policies.children is ChildRule.WITH_PARENT else None
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


def _place_of(path: str, parent: RunRecord, ref: str) -> str:
    """Where a file lies that its parent names by a path: beside it; of a fetched parent, where that was started."""
    if is_remote(path):
        return path
    above = parent.source_path
    folder = parent.cwd if above is None or is_remote(above) else os.path.dirname(above)
    return os.path.normpath(os.path.join(folder, ref))


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


def stopping_step(state: State) -> StepState | None:
    """The step that a run stopped at: the one that failed first, else one that is held or was rejected for good."""
    blocked = any(step.status is Status.UPSTREAM_FAILED for step in state.order)
    bad = [step for step in state.order if step.status is Status.FAILED and (blocked or not step.plan.tolerated)]
    if bad:
        return min(bad, key=lambda step: (step.closed_at or 0, step.place))
    return next((step for step in state.order if step.status is Status.HELD or step.spent), None)


def _error(state: State, step: StepState | None) -> str | None:
    """The error of the step that a run stopped at, with its name; else that of the run."""
    if step is None:
        return state.error or f"ended {state.status}"
    if step.spent:
        return f"step {step.id}: its gate rejected it: {step.rejections[-1].feedback}"
    error = step.error or ""
    by_hand = state.plan.policies.children is ChildRule.BY_HAND
    if by_hand and step.reason in (Reason.CHILD_FAILED, Reason.CHILD_BLOCKED):
        error = error.partition("\n")[0]  # what can be done about the child of a child is told once, for all
    return f"step {step.id}: {error}"


def _held_below(store: Store, run: str) -> tuple[str, ...]:
    """The held runs that a held run waits for, the deepest first."""
    held = next((row.record.id for row in store.find(parent=run) if row.summary.status is RunStatus.HELD), None)
    return () if held is None else (*_held_below(store, held), held)


def _used(state: State) -> Used:
    """What a run's models used so far."""
    used = Used()
    for step in state.order:
        for part in (step.used, step.judges_used):
            used.tokens += part.tokens
            used.tokens_in += part.tokens_in
            used.tokens_out += part.tokens_out
            used.whole += part.whole
    return used


def _charged(outcome: Outcome, now: Used, before: Used) -> Outcome:
    """The outcome with the tokens that the child used in this drive."""
    if now.tokens == before.tokens:
        return outcome
    if now.whole > before.whole:
        return msgspec.structs.replace(outcome, tokens=now.tokens - before.tokens)
    read, written = now.tokens_in - before.tokens_in, now.tokens_out - before.tokens_out
    return msgspec.structs.replace(outcome, tokens=now.tokens - before.tokens, tokens_in=read, tokens_out=written)
