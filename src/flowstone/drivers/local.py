"""The local driver: decides, commits, dispatches and waits, in one asyncio loop of this process.

Everything that is due is made durable in one commit before anything follows from it; whoever
watches is told after the commit.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from enum import StrEnum
from typing import Any

import msgspec

from flowstone.drivers.journal import Journal
from flowstone.plan.units import AnySpec
from flowstone.ports.clock import Clock
from flowstone.ports.dispatcher import Dispatch, Dispatcher
from flowstone.ports.observer import Observer
from flowstone.run.events import AttemptEnded, Event, RunInterrupted
from flowstone.run.fold import fold
from flowstone.run.outcome import Outcome, Reason, failed
from flowstone.run.state import State
from flowstone.scheduler.commands import Facts
from flowstone.scheduler.decide import decide


class Halt(StrEnum):
    """Why a drive came to its end."""

    ENDED = "ended"
    """The run has ended, whatever its status."""
    STEPS_SPENT = "steps-spent"
    """The drive finished as many steps as it was allowed to; the run is active."""
    REFUSED = "refused"
    """The run cannot complete: its outputs cannot be resolved."""
    INTERRUPTED = "interrupted"
    """A stop was asked for; the run is active and can be taken up again."""


class DriveEnd(msgspec.Struct, frozen=True):
    """How a drive ended: `problem` is the refusal, `cause` what interrupted it."""

    halt: Halt
    problem: str | None = None
    cause: str | None = None


class LocalDriver:
    """Drives one run whose lease the caller holds. `drive` is called once."""

    def __init__(
        self,
        state: State,
        journal: Journal,
        facts: Facts,
        dispatcher_of: Callable[[AnySpec], Dispatcher],
        clock: Clock,
        observer: Observer,
        redact: Callable[[Any], Any],
    ) -> None:
        self._state = state
        self._journal = journal
        self._facts = facts
        self._dispatcher_of = dispatcher_of
        self._clock = clock
        self._observer = observer
        self._redact = redact
        self._tasks: dict[asyncio.Task[Outcome], Dispatch] = {}
        self._ended: list[asyncio.Task[Outcome]] = []
        self._awake: asyncio.Event | None = None
        self._cause: str | None = None
        self._broken: BaseException | None = None

    def stop(self, cause: str) -> None:
        """Ask the drive to end what runs and to stop; from the loop's thread, any number of times."""
        self._cause = self._cause or cause
        if self._awake is not None:
            self._awake.set()

    async def drive(self, first: Sequence[Event] = ()) -> DriveEnd:
        """Drive the run as far as it gets. `first` are events to record before all others."""
        self._awake = asyncio.Event()
        events: list[Event] = []
        for event in first:
            fold(self._state, event)
            events.append(event)
        try:
            return await self._turns(events)
        finally:
            await self._cancel_all()

    async def _turns(self, events: list[Event]) -> DriveEnd:
        while True:
            events += self._collect()
            if self._broken is not None:
                self._commit(events)
                raise self._broken
            if self._cause is not None:
                return await self._interrupt(events)
            self._facts.jitter = self._clock.jitter()
            decision = decide(self._state, self._facts, self._clock.now_ms(), self._redact)
            events += decision.events
            self._commit(events)
            events = []
            for dispatch in decision.dispatches:
                self._start(dispatch)
            if decision.refusal is not None:
                return DriveEnd(Halt.REFUSED, problem=decision.refusal)
            if not self._state.active:
                return DriveEnd(Halt.ENDED)
            if not self._tasks and decision.wake_at is None:
                return DriveEnd(Halt.STEPS_SPENT)
            await self._wait(decision.wake_at)

    def _commit(self, events: list[Event]) -> None:
        if events:
            self._journal.append(events, self._state)
            self._observer.recorded(self._state, events)

    def _start(self, dispatch: Dispatch) -> None:
        work = self._dispatcher_of(dispatch.spec).perform(dispatch)
        task: asyncio.Task[Outcome] = asyncio.get_running_loop().create_task(work)
        self._tasks[task] = dispatch
        task.add_done_callback(self._on_done)

    def _on_done(self, task: asyncio.Task[Outcome]) -> None:
        self._ended.append(task)
        assert self._awake is not None
        self._awake.set()

    def _collect(self) -> list[Event]:
        """The events of the attempts that have ended since, folded in.

        A dispatcher that raised has no outcome: the attempt stays open, to be begun again, and the
        drive breaks off after the commit of the others.
        """
        ended, self._ended = self._ended, []
        return [event for task in ended if (event := self._end_of(task)) is not None]

    def _end_of(self, task: asyncio.Task[Outcome]) -> Event | None:
        dispatch = self._tasks.pop(task, None)
        if dispatch is None:
            return None
        if not task.cancelled() and (error := task.exception()) is not None:
            self._broken = self._broken or error
            return None
        outcome = failed(Reason.ABORTED, "the run was stopped") if task.cancelled() else task.result()
        for text in outcome.warnings:
            self._observer.warned(text)
        event = AttemptEnded(
            dispatch.step, dispatch.unit, self._clock.now_ms(), outcome, dispatch.number, dispatch.index
        )
        fold(self._state, event)
        return event

    async def _wait(self, wake_at: int | None) -> None:
        assert self._awake is not None
        if not self._ended and self._cause is None:
            if wake_at is None:
                await self._awake.wait()
            else:
                await self._wait_until(wake_at)
        self._awake.clear()

    async def _wait_until(self, wake_at: int) -> None:
        assert self._awake is not None
        delay = max(0.0, (wake_at - self._clock.now_ms()) / 1000)
        loop = asyncio.get_running_loop()
        timer = loop.call_later(delay, self._awake.set)
        try:
            await self._awake.wait()
        finally:
            timer.cancel()

    async def _interrupt(self, events: list[Event]) -> DriveEnd:
        """End what runs, record it as aborted, and leave the run to be taken up again."""
        assert self._cause is not None
        await self._cancel_all()
        events += self._collect()
        interrupted = RunInterrupted(self._clock.now_ms(), self._cause)
        fold(self._state, interrupted)
        events.append(interrupted)
        self._commit(events)
        if self._broken is not None:
            raise self._broken
        return DriveEnd(Halt.INTERRUPTED, cause=self._cause)

    async def _cancel_all(self) -> None:
        running = [task for task in self._tasks if not task.done()]
        for task in running:
            task.cancel()
        if running:
            await asyncio.wait(running)
            await asyncio.sleep(0)  # let the done callbacks run
