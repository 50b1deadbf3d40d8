"""The foreground scheduler in fake time: times, missed ones, clocks that jump, and two at once."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from flowstone.ports.activation import Missed
from flowstone.schedule.foreground import Foreground, Rule, Table, World
from flowstone.schedule.marks import Marks

START = datetime(2026, 1, 1, 12, 0, 30, tzinfo=UTC)
MINUTELY = Table("tick.yml", "tick", "* * * * *", ("run", "tick.yml"))


class Stage:
    """A world whose clock goes on when the scheduler sleeps; `jumps` maps a look to what the clock does there."""

    def __init__(self, tmp_path, *, looks=40, lasts=0, rule=Missed.ONCE, window=timedelta(hours=24)) -> None:
        self.now = START
        self.looks = looks
        self.lasts = lasts
        self.jumps: dict[int, timedelta] = {}
        self.started: list[tuple[str, datetime]] = []
        self.stopped: list[str] = []
        self.said: list[str] = []
        self.tables = [MINUTELY]
        self._number = 0
        world = World(lambda: self.now, self._wait, self._nap, self._start, self.said.append, lambda: self.tables)
        self.scheduler = Foreground(Rule(rule, window, UTC), Marks(str(tmp_path)), world)

    def run(self):
        self.scheduler.run()
        return [moment.strftime("%H:%M") for _, moment in self.started]

    def _wait(self, seconds):
        self._number += 1
        self.now += self.jumps.get(self._number, timedelta(seconds=seconds))
        return self._number >= self.looks

    def _nap(self, seconds):
        self.now += timedelta(seconds=seconds)

    def _start(self, table, lock):
        self.started.append((table.name, self.now))
        return _Job(self, self.now + timedelta(seconds=self.lasts))


class _Job:
    def __init__(self, stage, until) -> None:
        self._stage = stage
        self._until = until

    def ended(self):
        return 0 if self._stage.now >= self._until else None

    def stop(self):
        self._stage.stopped.append("stop")
        self._until = self._stage.now + timedelta(seconds=1)


def test_each_time_is_run_once(tmp_path):
    assert Stage(tmp_path, looks=45).run()[:3] == ["12:01", "12:02", "12:03"]


def test_the_first_look_runs_nothing_of_the_past(tmp_path):
    assert Stage(tmp_path, looks=1).run() == []


@pytest.mark.parametrize(
    ("rule", "runs", "words"),
    [
        (Missed.ONCE, 1, "179 times missed; one run catches up"),
        (Missed.SKIP, 1, "179 times missed, skipped"),
        (Missed.ALL, 180, "each is run now"),
    ],
)
def test_a_machine_that_slept_for_three_hours(tmp_path, rule, runs, words):
    stage = Stage(tmp_path, looks=200 if rule is Missed.ALL else 3, rule=rule)
    stage.jumps[1] = timedelta(hours=3)
    stage.jumps |= dict.fromkeys(range(2, 200), timedelta())
    assert len(stage.run()) == runs
    assert any(words in line for line in stage.said)


def test_the_window_of_all(tmp_path):
    stage = Stage(tmp_path, looks=200, rule=Missed.ALL, window=timedelta(minutes=10))
    stage.jumps[1] = timedelta(hours=3)
    stage.jumps |= dict.fromkeys(range(2, 200), timedelta())
    assert len(stage.run()) == 10
    assert any("older than the window are skipped" in line for line in stage.said)


def test_the_same_after_a_restart(tmp_path):
    Stage(tmp_path, looks=20).run()
    later = Stage(tmp_path, looks=2)
    later.now = START + timedelta(hours=2)
    assert len(later.run()) == 1
    assert any("missed" in line for line in later.said)


def test_a_clock_set_back_by_an_hour_runs_nothing_twice(tmp_path):
    stage = Stage(tmp_path, looks=60)
    stage.jumps[25] = timedelta(hours=-1)
    moments = stage.run()
    assert moments[:2] == ["12:01", "12:02"]
    assert len(moments) == len(set(moments))
    assert not any(moment.startswith("11:") for moment in moments)


def test_a_clock_that_was_far_ahead_is_put_right(tmp_path):
    wrong = Stage(tmp_path, looks=20)
    wrong.now = START + timedelta(days=400)
    wrong.run()
    right = Stage(tmp_path, looks=45)
    assert right.run()[:2] == ["12:01", "12:02"]
    assert any("set back" in line for line in right.said)


def test_two_at_once_run_each_time_once(tmp_path):
    first, second = Stage(tmp_path, looks=45), Stage(tmp_path, looks=45)
    both = first.run() + second.run()
    assert len(both) == len(set(both))


def test_a_run_that_lasts_is_not_started_beside_itself(tmp_path):
    stage = Stage(tmp_path, looks=400, lasts=150)
    moments = stage.run()
    assert moments[:2] == ["12:01", "12:04"]
    assert any("is skipped: the run before has not ended" in line for line in stage.said)


def test_with_all_the_times_wait_for_the_run_before(tmp_path):
    stage = Stage(tmp_path, looks=700, lasts=90, rule=Missed.ALL)
    moments = stage.run()
    assert moments[:3] == ["12:01", "12:02", "12:04"]


def test_another_schedulers_run_is_waited_out(tmp_path):
    marks = Marks(str(tmp_path))
    assert marks.occupy("tick") is not None
    stage = Stage(tmp_path, looks=20)
    assert stage.run() == []
    assert any("another scheduler's run goes on" in line for line in stage.said)


def test_what_runs_is_stopped_in_order(tmp_path):
    stage = Stage(tmp_path, looks=20, lasts=100_000)
    assert stage.run() == ["12:01"]
    assert stage.stopped == ["stop"]
    assert not any("goes on by itself" in line for line in stage.said)


def test_tables_that_change_count_from_then_on(tmp_path):
    stage = Stage(tmp_path, looks=45)
    stage.run()
    other = Stage(tmp_path, looks=1)
    other.tables = [Table("tick.yml", "tick, changed", "*/2 * * * *", ("x",))]
    other.now = START + timedelta(hours=5)
    assert other.run() == []


def test_a_run_that_cannot_be_started_is_told_and_the_next_is_tried(tmp_path):
    stage = Stage(tmp_path, looks=45)
    begin = stage._start

    def fails_once(table, lock):
        if not any("cannot be started" in line for line in stage.said):
            raise OSError(12, "Cannot allocate memory")
        return begin(table, lock)

    stage.scheduler._world = World(
        lambda: stage.now, stage._wait, stage._nap, fails_once, stage.said.append, lambda: stage.tables
    )
    assert stage.run()[:2] == ["12:02", "12:03"]
    assert any("Cannot allocate memory" in line for line in stage.said)
