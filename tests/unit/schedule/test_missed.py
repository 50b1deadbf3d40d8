"""The rules for missed times, and marks that two schedulers share."""

from __future__ import annotations

import os
from datetime import UTC, datetime, timedelta

import pytest

from flowstone.ports.activation import Missed
from flowstone.schedule.marks import Marks
from flowstone.schedule.missed import due, looked_until

NOW = datetime(2026, 1, 1, 12, 0, 10, tzinfo=UTC)
DAY = timedelta(hours=24)


def ago(*minutes: float) -> list[datetime]:
    return [NOW - timedelta(minutes=number) for number in minutes]


@pytest.mark.parametrize("rule", list(Missed))
def test_a_time_that_is_on_time_runs_by_every_rule(rule):
    found = due(ago(0.2), NOW, rule, DAY)
    assert (found.run, found.missed) == (tuple(ago(0.2)), 0)


@pytest.mark.parametrize(
    ("rule", "window", "run", "missed", "dropped"),
    [
        (Missed.SKIP, DAY, (), 3, 3),
        (Missed.ONCE, DAY, (2,), 3, 2),
        (Missed.ALL, DAY, (180, 60, 2), 3, 0),
        (Missed.ALL, timedelta(hours=1), (60, 2), 3, 1),
    ],
)
def test_missed_times(rule, window, run, missed, dropped):
    found = due(ago(180, 60, 2), NOW, rule, window)
    assert found.run == tuple(ago(*run))
    assert (found.missed, found.dropped) == (missed, dropped)


def test_once_lets_a_time_that_is_on_time_catch_up_for_all():
    found = due(ago(180, 60, 0.1), NOW, Missed.ONCE, DAY)
    assert (found.run, found.missed) == (tuple(ago(0.1)), 2)


def test_a_clock_that_was_set_back_an_hour_repeats_nothing():
    mark = NOW + timedelta(hours=1)
    assert looked_until(mark, NOW) == mark


def test_a_clock_that_was_put_right_starts_anew():
    assert looked_until(NOW + timedelta(days=300), NOW) == NOW
    assert looked_until(None, NOW) == NOW


def test_a_mark_is_kept_and_claimed_once(tmp_path):
    first, second = Marks(str(tmp_path / "m")), Marks(str(tmp_path / "m"))
    assert first.claim("t", lambda mark: (NOW, mark)) is None
    assert second.claim("t", lambda mark: (NOW, mark)) == NOW
    assert second.claim("other", lambda mark: (NOW, mark)) is None


def test_a_job_lock_goes_with_its_descriptor(tmp_path):
    marks = Marks(str(tmp_path))
    held = marks.occupy("t")
    assert held is not None
    assert marks.occupy("t") is None
    os.close(held)
    again = marks.occupy("t")
    assert again is not None
    os.close(again)
