"""A drive: take a run's lease, replay it, drive it under signals and time limits, release it."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from collections.abc import Callable, Sequence
from typing import Any, Protocol

import msgspec

from flowstone.drivers.journal import Journal, replay
from flowstone.drivers.local import DriveEnd, Halt, LocalDriver
from flowstone.drivers.transitions import Again, refuse_child, reopened, rerun, steps_to_reopen, unrouted
from flowstone.errors import IllegalTransition
from flowstone.plan.model import Plan
from flowstone.plan.units import AnySpec
from flowstone.ports.clock import Clock
from flowstone.ports.dispatcher import Dispatcher
from flowstone.ports.observer import ChildObserver, Observer, lines_of
from flowstone.ports.store import Lease, Store
from flowstone.run.events import DriverStarted, Event, RunReopened, RunStatus, Status, StepClosed, StepRejected
from flowstone.run.record import RunRow
from flowstone.run.state import State
from flowstone.scheduler.commands import Facts

LEASE_WAIT_MS = 8_000
"""How long a run is waited for whose driver is dead while its guard still ends commands."""


class DriveOptions(msgspec.Struct, frozen=True):
    """Bounds of one drive. None is no bound; times are milliseconds."""

    max_steps: int | None = None
    max_retries: int = 0
    timeout_ms: int | None = None
    run_width: int | None = None
    host_width: int | None = None
    reopen: bool = False
    """Take up again a run that failed, is held or was rejected."""
    again: Again | None = None
    """A step to run afresh, in a run of any status."""
    cancel_older: bool = False
    """Give up the runs that stand before this one under its limit, instead of waiting for them."""


class Executed(msgspec.Struct, frozen=True):
    """A step that ended in this drive."""

    step: str
    status: Status
    unit_count: int
    failed_units: int
    summary: str


class DriveReport(msgspec.Struct):
    """What a drive did, and the state it left."""

    row: RunRow
    state: State
    end: DriveEnd
    executed: list[Executed]
    warnings: list[str]


class Workshop(Protocol):
    """What a drive needs for a run's units; built per run by the composition root."""

    params: dict[str, Any]
    connections: dict[str, Any]

    def open(self, lease: Lease, observer: Observer) -> Callable[[AnySpec], Dispatcher]:
        """Make the dispatchers ready; asyncio's loop is running."""

    def redact(self, value: Any) -> Any:
        """Scrub a JSON value of every secret that the run knows by now."""

    async def close(self) -> None:
        """End what is left and release resources."""


def drive_run(
    store: Store,
    run_id: str,
    plan_of: Callable[[RunRow], Plan],
    workshop_of: Callable[[RunRow, State], Workshop],
    options: DriveOptions,
    clock: Clock,
    observer: Observer,
    lease: Lease | None = None,
) -> DriveReport:
    """Drive a run as far as it gets, under a `lease` that the caller took or one of its own.

    A run that another process drives raises LeaseHeld; one that has ended and is not reopened
    raises IllegalTransition, except that a completed one is reported as it is. So does the run of
    a nested workflow, which its parent drives.
    """
    lease = lease or store.lease(run_id, f"pid {os.getpid()}", wait_ms=LEASE_WAIT_MS)
    try:
        row = store.load(run_id)
        plan = plan_of(row)
        refuse_child(row.record, plan)
        state = replay(store, run_id, plan)
        watcher = _Watcher(observer)
        first = _first_events(state, clock.now_ms(), options)
        if first is None:
            return DriveReport(row, state, DriveEnd(Halt.ENDED), [], watcher.warnings)
        workshop = workshop_of(row, state)
        facts = Facts(
            params=workshop.params,
            connections=workshop.connections,
            host_width=options.host_width if state.plan.limits.host_capped else None,
            run_width=_run_width(state, options),
            steps_left=options.max_steps,
            only=options.again.step if options.again is not None and options.again.only else None,
        )
        drive = _Drive(state, Journal(store, run_id, state.seq), facts, workshop, clock, watcher, options)
        end = asyncio.run(drive.run(first, lease))
        return DriveReport(row, state, end, watcher.executed, watcher.warnings)
    finally:
        lease.release()


def _run_width(state: State, options: DriveOptions) -> int | None:
    limits = state.plan.limits
    return limits.run_width or options.run_width or limits.default_run_width


def _first_events(state: State, now: int, options: DriveOptions) -> list[Event] | None:
    """What to record before anything else; None when there is nothing to drive."""
    driver = DriverStarted(now, f"pid {os.getpid()}")
    unselected = unrouted(state)
    if options.again is not None:
        return [*rerun(state, options.again, now), driver]
    if options.reopen:
        event = reopened(state, now)
        if event is not None:
            return [RunReopened(now, tuple(dict.fromkeys((*event.steps, *unselected)))), driver]
    if state.status is RunStatus.SUCCEEDED:
        return None
    if state.status is not RunStatus.ACTIVE:
        raise IllegalTransition(
            f"Workflow run {state.run_id} is {state.status} and cannot be executed.",
            code="RUN_NOT_ACTIVE",
            hint="Resume it first: resume reopens the step that stopped it.",
        )
    return [RunReopened(now, unselected), driver] if unselected else [driver]


class _Drive:
    """One drive inside the loop: signals and the time limit stop it; failed steps may be retried."""

    def __init__(
        self,
        state: State,
        journal: Journal,
        facts: Facts,
        workshop: Workshop,
        clock: Clock,
        observer: Observer,
        options: DriveOptions,
    ) -> None:
        self._state = state
        self._journal = journal
        self._facts = facts
        self._workshop = workshop
        self._clock = clock
        self._observer = observer
        self._options = options
        self._driver: LocalDriver | None = None
        self._cause: str | None = None

    async def run(self, first: Sequence[Event], lease: Lease) -> DriveEnd:
        dispatcher_of = self._workshop.open(lease, self._observer)
        with contextlib.ExitStack() as stack:
            self._listen(stack)
            try:
                return await self._tries(first, dispatcher_of)
            finally:
                await self._workshop.close()

    async def _tries(self, first: Sequence[Event], dispatcher_of: Callable[[AnySpec], Dispatcher]) -> DriveEnd:
        retries = self._options.max_retries
        while True:
            self._driver = LocalDriver(
                self._state,
                self._journal,
                self._facts,
                dispatcher_of,
                self._clock,
                self._observer,
                self._workshop.redact,
            )
            if self._cause is not None:
                self._driver.stop(self._cause)
            end = await self._driver.drive(first)
            if end.halt is not Halt.ENDED or self._state.status is not RunStatus.FAILED or retries == 0:
                return end
            if self._facts.steps_left == 0 or self._cause is not None:
                return end
            retries -= 1
            first = [RunReopened(self._clock.now_ms(), steps_to_reopen(self._state))]

    def _listen(self, stack: contextlib.ExitStack) -> None:
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            with contextlib.suppress(ValueError, RuntimeError, NotImplementedError):
                loop.add_signal_handler(number, self._stop, f"signal:{number.name}")
                stack.callback(loop.remove_signal_handler, number)
        if self._options.timeout_ms is not None:
            timer = loop.call_later(self._options.timeout_ms / 1000, self._stop, "timeout")
            stack.callback(timer.cancel)

    def _stop(self, cause: str) -> None:
        self._cause = self._cause or cause
        if self._driver is not None:
            self._driver.stop(cause)


class _Watcher:
    """Passes everything on, and keeps the steps that ended and the warnings for the report."""

    def __init__(self, observer: Observer) -> None:
        self._observer = observer
        self.executed: list[Executed] = []
        self.warnings: list[str] = []

    def recorded(self, state: State, events: Sequence[Event]) -> None:
        for event in events:
            if isinstance(event, StepRejected) and event.spent:
                units = [a for a in state.steps[event.step].final_attempts() if a.index >= 0]
                text = f'Step "{event.step}" was rejected: {event.feedback}'
                self.executed.append(Executed(event.step, Status.FAILED, len(units), 0, text))
            if isinstance(event, StepClosed):
                step = state.steps[event.step]
                whole = "error" in (event.detail or {})
                self.executed.append(
                    Executed(
                        event.step,
                        event.status,
                        0 if whole else len(step.units),
                        0 if whole else step.failures,
                        event.summary or event.error or str((event.detail or {}).get("note", "")),
                    )
                )
        self._observer.recorded(state, events)

    def nested(self, path: str, state: State, events: Sequence[Event]) -> None:
        if isinstance(self._observer, ChildObserver):
            self._observer.nested(path, state, events)

    @property
    def line(self) -> Callable[[str, str, str], None]:
        """The observer's own: a command may print millions of lines, and each call counts."""
        return self._observer.line

    @property
    def lines(self) -> Callable[[str, str, Sequence[str]], None]:
        return lines_of(self._observer)

    def warned(self, text: str) -> None:
        self.warnings.append(text)
        self._observer.warned(text)
