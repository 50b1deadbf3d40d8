"""Fire times of workflow and task files, and the foreground scheduler that obeys them."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import msgspec

from flowstone.errors import FlowstoneError, InputError
from flowstone.ports.activation import Missed

if TYPE_CHECKING:
    from flowstone.api import Flowstone
    from flowstone.schedule.foreground import Table

REREAD_S = 2.0
"""A file whose time of change is another one is read again, at the latest after this time."""


class Fires(msgspec.Struct, frozen=True):
    """The next fire times of a file: (time in the zone, expression), and what the clock changes do to them."""

    zone: str
    crons: tuple[str, ...]
    times: tuple[tuple[datetime, str], ...]
    notes: tuple[str, ...]


class Bounds(msgspec.Struct, frozen=True):
    """How the foreground scheduler counts: the zone by name, and the rule for missed times with its window."""

    zone: str | None = None
    missed: Missed = Missed.ONCE
    window: timedelta = timedelta(hours=24)


def next_times(flow: Flowstone, target: str, start: str | None, count: int, zone: str | None) -> Fires:
    """The next `count` fire times of all tables of a file (or ref) behind the ISO time `start`, or now."""
    from flowstone.schedule.times import next_fires, notes
    from flowstone.schedule.zone import moment_of, zone_of

    crons = tuple(dict.fromkeys(crons_of(flow, target)))
    name, found = zone_of(zone, flow.wiring.env)
    after = datetime.now(UTC) if start is None else moment_of(start, found)
    times = tuple(next_fires(list(crons), after, count, found))
    until = times[-1][0] if times else after
    told = tuple(note for cron in crons for note in notes(cron, after, until, found))
    return Fires(name, crons, times, told)


def crons_of(flow: Flowstone, target: str) -> list[str]:
    """The expressions of a file's schedules; InputError for a file without one."""
    crons = [trigger.cron for trigger in flow.compiled_plan(target).triggers if trigger.cron is not None]
    if not crons:
        raise InputError(
            f"{target} has no schedule.",
            hint='Write on: { schedule: [{ cron: "0 6 * * *" }] } in a .yml workflow, schedule: "0 6 * * *" in a task.',
        )
    return crons


def run_scheduler(flow: Flowstone, targets: Sequence[str], bounds: Bounds, say: Callable[[str], None]) -> str | None:
    """Run files at their times until a signal comes; returns the signal's name. Every file must be sound at first."""
    from flowstone.schedule.foreground import Foreground, Process, Rule, World
    from flowstone.schedule.marks import Marks
    from flowstone.schedule.zone import zone_of

    sources = [_Source(flow, target, say) for target in targets]
    _, zone = zone_of(bounds.zone, flow.wiring.env)
    env = {**flow.wiring.env, "AKM_EVENT_SOURCE": "schedule"}
    folder = os.path.join(flow.wiring.paths.state, "flowstone", "schedule")

    def start(table: Table, lock: int) -> Process:
        return Process(table.argv, flow.wiring.cwd, env, lock)

    with _Signals() as signals:
        world = World(
            now=lambda: datetime.now(UTC),
            wait=signals.wait,
            nap=time.sleep,
            start=start,
            say=say,
            tables=lambda: [table for source in sources for table in source.tables()],
        )
        Foreground(Rule(bounds.missed, bounds.window, zone), Marks(folder), world).run()
    return signals.received


class _Source:
    """A file and its tables, read again when the file changes; one that became unsound keeps its old ones."""

    def __init__(self, flow: Flowstone, target: str, say: Callable[[str], None]) -> None:
        self._flow = flow
        self._target = target
        self._say = say
        self._path = flow.sound(target).source.path
        self._seen = self._stamp()
        self._looked = time.monotonic()
        self._tables = self._read()

    def tables(self) -> list[Table]:
        if time.monotonic() - self._looked >= REREAD_S:
            self._looked = time.monotonic()
            stamp = self._stamp()
            if stamp != self._seen:
                self._seen = stamp
                self._reread()
        return self._tables

    def _reread(self) -> None:
        try:
            self._tables = self._read()
            self._say(f"{self._target}: read again")
        except FlowstoneError as error:
            self._say(f"{self._target} changed and is not sound, its old times are kept: {error.message}")

    def _read(self) -> list[Table]:
        from flowstone.formats.registry import AKM_TASK
        from flowstone.schedule.foreground import Table

        workflow = self._flow.sound(self._target)
        if workflow.compiled.format == AKM_TASK:
            return self._task_tables()
        argv = (*self._flow.wiring.program("flowstone"), "run", self._target, "--quiet")
        crons = crons_of(self._flow, self._target)
        return [Table(self._target, self._key(number, cron), cron, argv) for number, cron in enumerate(crons)]

    def _task_tables(self) -> list[Table]:
        from flowstone.api.tasks import find_task
        from flowstone.schedule.foreground import Table
        from flowstone.schedule.rows import input_flags

        schedules = find_task(self._flow, self._target).task.schedules
        crons_of(self._flow, self._target)
        words = (*self._flow.wiring.program("akm"), "task", "run", self._target, "--quiet", "--format", "text")
        return [
            Table(self._target, self._key(number, one.cron), one.cron, (*words, *input_flags(one.inputs)))
            for number, one in enumerate(schedules)
        ]

    def _key(self, number: int, cron: str) -> str:
        return f"{os.path.realpath(self._path)}\n{number}\n{cron}"

    def _stamp(self) -> tuple[int, int] | None:
        try:
            found = os.stat(self._path)
        except OSError:
            return None
        return found.st_mtime_ns, found.st_ino


class _Signals:
    """Turns SIGTERM, SIGINT and SIGHUP into an event that can be waited for."""

    NAMES = ("SIGTERM", "SIGINT", "SIGHUP")

    def __init__(self) -> None:
        self.received: str | None = None
        self._stop = threading.Event()
        self._before: dict[int, Any] = {}

    def __enter__(self) -> _Signals:
        for name in self.NAMES:
            number = getattr(signal, name)
            self._before[number] = signal.signal(number, self._note)
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def wait(self, seconds: float) -> bool:
        return self._stop.wait(seconds)

    def _note(self, number: int, _frame: object) -> None:
        self.received = signal.Signals(number).name
        self._stop.set()
