"""A scheduler in the foreground: time tables of files → runs of them, for places without cron.

Its loop looks at the wall clock, at the latest every few seconds, so that a clock that jumps, a
machine that slept or a process that was stopped costs nothing but the rule for missed times.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Any, Protocol

import msgspec

from flowstone.ports.activation import Missed
from flowstone.schedule.marks import Marks
from flowstone.schedule.missed import Due, due, looked_until
from flowstone.schedule.times import fires, fires_between

LONGEST_SLEEP_S = 5.0
MOST = 10_000
"""Missed times of a table that are counted, the latest."""
STOP_S = 30.0
"""How long runs get to stop in order when the scheduler is ended."""


class Table(msgspec.Struct, frozen=True):
    """A time table: `name` is what people call it, `key` names it on this machine, `argv` is its run."""

    name: str
    key: str
    cron: str
    argv: tuple[str, ...]


class Job(Protocol):
    """A run that was started."""

    def ended(self) -> int | None:
        """Its exit code, or None while it runs."""

    def stop(self) -> None:
        """Ask it to stop in order."""


class Rule(msgspec.Struct, frozen=True):
    """The rule for missed times, the window of `all`, and the zone that the tables are in."""

    missed: Missed
    window: timedelta
    zone: tzinfo


class World(msgspec.Struct, frozen=True):
    """What the loop needs of the outside.

    `wait` sleeps so many seconds at most and tells whether to stop; `nap` sleeps whatever is told.
    """

    now: Callable[[], datetime]
    wait: Callable[[float], bool]
    nap: Callable[[float], None]
    start: Callable[[Table, int], Job]
    say: Callable[[str], None]
    tables: Callable[[], Sequence[Table]]
    """The tables as the files have them now."""


class Foreground:
    """The loop; `run` returns when it was told to stop and its runs have stopped."""

    def __init__(self, rule: Rule, marks: Marks, world: World) -> None:
        self._rule = rule
        self._marks = marks
        self._world = world
        self._jobs: dict[str, tuple[Table, Job]] = {}
        self._waiting: dict[str, list[tuple[Table, datetime]]] = {}

    def run(self) -> None:
        try:
            while True:
                tables = self._world.tables()
                self._reap()
                for table in tables:
                    self._look(table)
                    self._start_next(table.key)
                if self._world.wait(self._pause(tables)):
                    return
        finally:
            self._stop()

    def _look(self, table: Table) -> None:
        now = self._world.now()
        found = self._marks.claim(table.key, lambda mark: self._claimed(table, mark, now))
        if found.missed:
            self._world.say(f"{table.name}: {_told(found, self._rule)}")
        for moment in found.run:
            self._enqueue(table, moment)

    def _claimed(self, table: Table, mark: datetime | None, now: datetime) -> tuple[datetime, Due]:
        """The mark moves only with a time that came: what a look without one would write is lost work."""
        start = looked_until(mark, now)
        if mark is not None and start < mark:
            self._world.say(f"{table.name}: the clock was set back to {_face(now, self._rule.zone)}; going on from it")
        times = fires_between(table.cron, start, now, self._rule.zone, MOST) if start < now else []
        return now if times else start, due(times, now, self._rule.missed, self._rule.window)

    def _enqueue(self, table: Table, moment: datetime) -> None:
        waiting = self._waiting.setdefault(table.key, [])
        if (table.key in self._jobs or waiting) and self._rule.missed is not Missed.ALL:
            self._world.say(f"{table.name}: {_face(moment, self._rule.zone)} is skipped: the run before has not ended")
            return
        waiting.append((table, moment))

    def _start_next(self, key: str) -> None:
        waiting = self._waiting.get(key)
        if not waiting or key in self._jobs:
            return
        table, moment = waiting[0]
        lock = self._marks.occupy(key)
        if lock is None and self._rule.missed is Missed.ALL:
            return
        del waiting[0]
        if lock is None:
            self._world.say(
                f"{table.name}: {_face(moment, self._rule.zone)} is skipped: another scheduler's run goes on"
            )
            return
        try:
            self._world.say(f"{table.name}: run of {_face(moment, self._rule.zone)}")
            self._jobs[key] = (table, self._world.start(table, lock))
        except OSError as error:
            self._world.say(f"{table.name}: its run cannot be started: {error.strerror}")
        finally:
            os.close(lock)

    def _reap(self) -> None:
        for key, (table, job) in list(self._jobs.items()):
            code = job.ended()
            if code is not None:
                del self._jobs[key]
                if code != 0:
                    self._world.say(f"{table.name}: the run ended with {code}")
                self._start_next(key)

    def _pause(self, tables: Sequence[Table]) -> float:
        """Until the next time, or the next look."""
        if self._jobs or any(self._waiting.values()):
            return 0.5
        now = self._world.now()
        after = now.astimezone(UTC)
        nexts = [next(fires(table.cron, after, self._rule.zone), None) for table in tables]
        waits = [(moment - now).total_seconds() for moment in nexts if moment is not None]
        return max(0.05, min([*waits, LONGEST_SLEEP_S]))

    def _stop(self) -> None:
        for _, job in self._jobs.values():
            job.stop()
        waited = 0.0
        while self._jobs and waited < STOP_S:
            self._reap_stopped()
            if self._jobs:
                self._world.nap(0.1)
                waited += 0.1
        for table, _ in self._jobs.values():
            self._world.say(f"{table.name}: its run did not stop within {STOP_S:.0f} s and goes on by itself")

    def _reap_stopped(self) -> None:
        self._jobs = {key: found for key, found in self._jobs.items() if found[1].ended() is None}


class Process:
    """A Job that is a process of its own session; it inherits the lock of its table."""

    def __init__(self, argv: Sequence[str], cwd: str, env: Mapping[str, str], lock: int) -> None:
        import subprocess

        self._process: Any = subprocess.Popen(
            list(argv),
            cwd=cwd,
            env=dict(env),
            stdin=subprocess.DEVNULL,
            pass_fds=(lock,),
            start_new_session=True,
        )

    def ended(self) -> int | None:
        code: int | None = self._process.poll()
        return code

    def stop(self) -> None:
        if self._process.poll() is None:
            self._process.terminate()


def _told(found: Due, rule: Rule) -> str:
    times = f"{found.missed} time{'' if found.missed == 1 else 's'} missed"
    match rule.missed:
        case Missed.SKIP:
            return f"{times}, skipped (--missed skip)"
        case Missed.ONCE:
            return f"{times}; one run catches up (--missed once)"
        case Missed.ALL if found.dropped:
            return f"{times}; {found.dropped} of them older than the window are skipped (--missed all)"
        case Missed.ALL:
            return f"{times}; each is run now (--missed all)"


def _face(moment: datetime, zone: tzinfo) -> str:
    return moment.astimezone(zone).strftime("%Y-%m-%d %H:%M")
