"""Drives runs of small plans in a test: one store, one script, fake time unless asked otherwise."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from unittest import mock

from flowstone.drivers.drive import DriveOptions, DriveReport, drive_run
from flowstone.freeze.frozen import freeze
from flowstone.plan.codec import decode_plan, encode_plan, plan_hash
from flowstone.plan.model import Plan
from flowstone.ports.catalog import EngineConfig
from flowstone.run.fold import replay
from flowstone.run.outcome import Outcome, Reason, failed
from flowstone.run.record import RunRecord, RunSummary
from flowstone.run.state import State
from flowstone.stores.memory import MemoryStore
from flowstone.testing.clock import FakeClock
from flowstone.testing.leaping_loop import LeapingLoop
from flowstone.testing.scripted_dispatcher import Script, ScriptedDispatcher
from flowstone.values import canonical_json

RUN = "run-00000001"
BAD = failed(Reason.NON_ZERO_EXIT, "exited 1")


def ok(value: Any = None, **fields: Any) -> Outcome:
    return Outcome(value=value, **fields)


def bad(reason: Reason = Reason.NON_ZERO_EXIT, error: str = "exited 1", **fields: Any) -> Outcome:
    return Outcome(reason=reason, error=error, diagnostic=error, **fields)


class Bench:
    """One run. Each `drive` is a process of its own: all that it knows is in the store."""

    def __init__(
        self,
        plan: Plan,
        script: Script | None = None,
        params: dict[str, Any] | None = None,
        store: Any = None,
        clock: FakeClock | None = None,
    ) -> None:
        self.script = script or Script()
        self.params = params or {}
        self.store = store or MemoryStore()
        self.clock = clock or FakeClock()
        self.dispatcher = ScriptedDispatcher(self.script)
        self.dispatchers = [self.dispatcher]
        self.redact: Callable[[Any], Any] = lambda value: value
        self.reports: list[DriveReport] = []
        self.recorded: list[Any] = []
        self.plan = freeze(plan, EngineConfig()).plan if plan.policies.reuse_units else plan
        if plan.limits.step_width is not None:
            from msgspec.structs import replace

            self.plan = replace(self.plan, limits=plan.limits)
        text = encode_plan(self.plan)
        record = RunRecord(
            RUN, plan.dialect, "ref", "Flow", "/here", "/here", text, plan_hash(text), self.clock.now_ms()
        )
        self.store.create(record, RunSummary())

    def drive(self, *, store: Any = None, reopen: bool = False, **options: Any) -> DriveReport:
        """One drive with a dispatcher of its own, in fake time."""
        self.dispatcher = ScriptedDispatcher(self.script)
        self.dispatchers.append(self.dispatcher)
        loop = LeapingLoop(self.clock)
        try:
            with mock.patch("flowstone.drivers.drive.asyncio.run", loop.run_until_complete):
                report = drive_run(
                    store or self.store,
                    RUN,
                    lambda row: decode_plan(row.record.plan),
                    lambda row, state: _Workshop(self),
                    DriveOptions(**options, reopen=reopen),
                    self.clock,
                    _Recorder(self),
                )
        finally:
            for task in self.dispatcher_tasks(loop):
                task.cancel()
            loop.run_until_complete(_drained())
            loop.close()
        self.reports.append(report)
        return report

    @staticmethod
    def dispatcher_tasks(loop: LeapingLoop) -> list[Any]:
        import asyncio

        return [task for task in asyncio.all_tasks(loop) if not task.done()]

    def dispatcher_of(self, spec: Any) -> Any:
        """Who performs a unit: the one of this drive, whatever the kind."""
        return self.dispatcher

    def resume(self, **options: Any) -> DriveReport:
        return self.drive(reopen=True, **options)

    @property
    def state(self) -> State:
        """What the journal says now, with large values fetched."""
        from flowstone.drivers.journal import replay as whole

        return whole(self.store, RUN, decode_plan(self.store.load(RUN).record.plan))

    @property
    def bare_state(self) -> State:
        return replay(RUN, self.plan, self.store.read(RUN))

    def statuses(self) -> str:
        """`a=succeeded b=failed`, in file order."""
        return " ".join(f"{step.id}={step.status}" for step in self.state.order)

    def artifact(self, step: str) -> Any:
        return self.state.steps[step].artifact

    def step(self, step: str) -> Any:
        return self.state.steps[step]

    def asked(self) -> list[Any]:
        """Every dispatch of every drive, in order."""
        return [dispatch for dispatcher in self.dispatchers for dispatch in dispatcher.asked]

    def events(self, kind: type) -> list[Any]:
        return [entry.event for entry in self.store.read(RUN) if isinstance(entry.event, kind)]


def driven(plan: Plan, script: Script | None = None, params: dict[str, Any] | None = None, **options: Any) -> Bench:
    """A bench whose run has been driven once."""
    bench = Bench(plan, script, params)
    bench.drive(**options)
    return bench


def shown(state: State) -> str:
    """All of a state that the journal decides, as one text to compare."""
    return canonical_json(
        {
            "run": [state.seq, state.status, state.outputs, state.error, state.dispatched, state.tokens, state.stopped],
            "open": [state.open_steps, state.unended],
            "steps": [
                [s.id, s.status, s.artifact, s.reason, s.error, s.summary, s.detail, len(s.attempts), s.dispatched]
                for s in state.order
            ],
        }
    )


async def _drained() -> None:
    import asyncio

    for _ in range(3):
        await asyncio.sleep(0)


class _Workshop:
    def __init__(self, bench: Bench) -> None:
        self._bench = bench
        self.params = bench.params
        self.connections: dict[str, Any] = {}

    def open(self, lease: Any, observer: Any) -> Callable[[Any], Any]:
        return self._bench.dispatcher_of

    def redact(self, value: Any) -> Any:
        return self._bench.redact(value)

    async def close(self) -> None:
        await self._bench.dispatcher.close()


class _Recorder:
    def __init__(self, bench: Bench) -> None:
        self._bench = bench

    def recorded(self, state: State, events: Any) -> None:
        self._bench.recorded += events

    def line(self, step: str, unit: str, text: str) -> None:
        pass

    def warned(self, text: str) -> None:
        pass
