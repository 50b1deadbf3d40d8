"""The local driver: decides, commits, dispatches and waits, in one asyncio loop of this process.

Everything that is due is made durable in one commit before anything follows from it; what does not
follow from it is on its way meanwhile. Whoever watches is told after the commit.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from enum import StrEnum
from functools import partial
from typing import Any, TypeAlias

import msgspec

from flowstone.drivers.journal import Journal
from flowstone.plan.reads import rests_on
from flowstone.plan.units import AnySpec
from flowstone.ports.clock import Clock
from flowstone.ports.dispatcher import Beginner, Dispatch, Dispatcher
from flowstone.ports.observer import Observer
from flowstone.run.events import AttemptEnded, AttemptStarted, Event, RunInterrupted, StepClosed
from flowstone.run.fold import fold
from flowstone.run.outcome import Outcome, Reason, failed
from flowstone.run.state import State
from flowstone.scheduler.commands import Decision, Facts
from flowstone.scheduler.decide import decide

Done: TypeAlias = Callable[[Outcome | BaseException], None]


BATCH = 128
"""Events that may wait for others to share their commit with."""


class Halt(StrEnum):
    """Why a drive came to its end."""

    ENDED = "ended"
    """The run has ended, whatever its status."""
    STEPS_SPENT = "steps-spent"
    """The drive finished as many steps as it was allowed to; the run is active."""
    REFUSED = "refused"
    """The run cannot complete: its outputs cannot be resolved."""
    REJECTED = "rejected"
    """A gate rejected a step and no execution is left; the run is active until a person resumes it."""
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
        self._running: dict[int, tuple[Dispatch, Callable[[], object]]] = {}
        self._ended: list[tuple[int, Outcome | BaseException]] = []
        self._begun = 0
        self._dispatchers: dict[type, tuple[Dispatcher, Beginner | None]] = {}
        self._awake: asyncio.Event | None = None
        self._cause: str | None = None
        self._broken: BaseException | None = None
        self._alarmed = len(state.alarms.given)

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
            if self._start(decision.ahead):
                # Their tasks send what they have to send, and the disk writes meanwhile.
                await asyncio.sleep(0)
                if self._ended and len(events) < BATCH and _only_goes_on(decision):
                    continue
            self._commit(events, decision)
            events = []
            if decision.refusal is not None:
                return DriveEnd(Halt.REFUSED, problem=decision.refusal)
            if not self._state.active:
                return DriveEnd(Halt.ENDED)
            if not self._running and decision.wake_at is None:
                spent = any(step.spent for step in self._state.order)
                return DriveEnd(Halt.REJECTED if spent else Halt.STEPS_SPENT)
            await self._wait(decision.wake_at)

    def _commit(self, events: list[Event], decision: Decision | None = None) -> None:
        """Record events, start what may follow from them as soon as it may, then tell whoever watches."""
        if not events:
            return
        beside, behind = _by_patience(decision, self._state) if decision is not None else ([], [])
        self._journal.append(events, self._state, partial(self._start, beside) if beside else None)
        self._start(behind)
        self._observer.recorded(self._state, events)
        alarms = self._state.alarms.given
        for alarm in alarms[self._alarmed :]:
            self._observer.warned(alarm.text)
        self._alarmed = len(alarms)

    def _start(self, dispatches: Sequence[Dispatch]) -> bool:
        """Hand attempts out. Whether any is a task, which is only on its way when the loop comes round."""
        beginners: dict[int, Beginner] = {}
        tasks = False
        for dispatch in dispatches:
            kind = type(dispatch.spec)
            if kind not in self._dispatchers:
                dispatcher = self._dispatcher_of(dispatch.spec)
                self._dispatchers[kind] = (dispatcher, dispatcher if isinstance(dispatcher, Beginner) else None)
            dispatcher, beginner = self._dispatchers[kind]
            self._begun += 1
            done = partial(self._on_end, self._begun)
            if beginner is not None:
                beginners[id(beginner)] = beginner
                cancel: Callable[[], object] = beginner.begin(dispatch, done)
            else:
                cancel = _begin_task(dispatcher, dispatch, done)
                tasks = True
            self._running[self._begun] = (dispatch, cancel)
        for beginner in beginners.values():
            beginner.push()
        return tasks

    def _on_end(self, key: int, result: Outcome | BaseException) -> None:
        self._ended.append((key, result))
        assert self._awake is not None
        self._awake.set()

    def _collect(self) -> list[Event]:
        """The events of the attempts that have ended since, folded in.

        A dispatcher that raised has no outcome: the attempt stays open, to be begun again, and the
        drive breaks off after the commit of the others.
        """
        ended, self._ended = self._ended, []
        return [event for key, result in ended if (event := self._end_of(key, result)) is not None]

    def _end_of(self, key: int, result: Outcome | BaseException) -> Event | None:
        dispatch, _ = self._running.pop(key)
        if isinstance(result, BaseException):
            self._broken = self._broken or result
            return None
        outcome = result
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
        """End what runs, and leave the run to be taken up again.

        What ended by itself meanwhile is judged, so that a step that is done is closed; what was
        ended is recorded as aborted and judged by nobody.
        """
        assert self._cause is not None
        await self._cancel_all()
        aborted = [entry for entry in self._ended if _was_aborted(entry[1])]
        self._ended = [entry for entry in self._ended if not _was_aborted(entry[1])]
        events += self._collect()
        facts = msgspec.structs.replace(self._facts, admitting=False)
        events += decide(self._state, facts, self._clock.now_ms(), self._redact).events
        if not self._state.active:
            self._commit(events)
            return DriveEnd(Halt.ENDED)
        self._ended = aborted
        events += self._collect()
        interrupted = RunInterrupted(self._clock.now_ms(), self._cause)
        fold(self._state, interrupted)
        events.append(interrupted)
        self._commit(events)
        if self._broken is not None:
            raise self._broken
        return DriveEnd(Halt.INTERRUPTED, cause=self._cause)

    async def _cancel_all(self) -> None:
        assert self._awake is not None
        ended = {key for key, _ in self._ended}
        for key, (_, cancel) in self._running.items():
            if key not in ended:
                cancel()
        while len(self._ended) < len(self._running):
            self._awake.clear()
            await self._awake.wait()


def _by_patience(decision: Decision, state: State) -> tuple[list[Dispatch], list[Dispatch]]:
    """The attempts that may start once the events outlive this process, and those that wait for the disk.

    A judge, a repetition, and whatever rests on the result of a step that has only just ended uses
    what the disk does not have yet. All else merely comes later.
    """
    fresh = {event.step for event in decision.events if isinstance(event, StepClosed)}
    beside: list[Dispatch] = []
    behind: list[Dispatch] = []
    for dispatch in decision.behind:
        step = state.steps[dispatch.step]
        waits = dispatch.number > 0 or dispatch.index < 0 or step.loop > 1
        if not waits and fresh:
            waits = not fresh.isdisjoint(rests_on(step.plan))
        (behind if waits else beside).append(dispatch)
    return beside, behind


def _only_goes_on(decision: Decision) -> bool:
    """Whether nothing but units of open steps came and went: no later attempt can rest on such a decision."""
    settled = decision.behind or decision.refusal is not None
    return not settled and all(isinstance(event, (AttemptStarted, AttemptEnded)) for event in decision.events)


def _was_aborted(result: Outcome | BaseException) -> bool:
    return isinstance(result, Outcome) and result.reason is Reason.ABORTED


def _begin_task(dispatcher: Dispatcher, dispatch: Dispatch, done: Done) -> Callable[[], object]:
    """Perform an attempt in a task of its own; what is returned ends it."""

    def ended(task: asyncio.Task[Outcome]) -> None:
        if task.cancelled():
            done(failed(Reason.ABORTED, "the run was stopped"))
        else:
            done(task.exception() or task.result())

    task: asyncio.Task[Outcome] = asyncio.get_running_loop().create_task(dispatcher.perform(dispatch))
    task.add_done_callback(ended)
    return task.cancel
