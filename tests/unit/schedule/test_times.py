"""Fire times through changes of the clock, and what is told of them."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from flowstone.errors import InputError
from flowstone.schedule.times import fires, fires_between, next_fires, notes
from flowstone.schedule.zone import moment_of, zone_of

NEW_YORK, LORD_HOWE = "America/New_York", "Australia/Lord_Howe"


def nexts(cron: str, start: str, count: int, zone: str) -> list[str]:
    found = zone_of(zone, {})[1]
    return [moment.isoformat() for moment, _ in next_fires([cron], moment_of(start, found), count, found)]


def told(cron: str, start: str, end: str, zone: str) -> list[str]:
    found = zone_of(zone, {})[1]
    return notes(cron, moment_of(start, found), moment_of(end, found), found)


def test_a_skipped_time_fires_once_right_after_the_gap():
    assert nexts("30 2 * * *", "2026-03-07T12:00Z", 3, NEW_YORK) == [
        "2026-03-08T03:00:00-04:00",
        "2026-03-09T02:30:00-04:00",
        "2026-03-10T02:30:00-04:00",
    ]
    (note,) = told("30 2 * * *", "2026-03-07T12:00Z", "2026-03-10T12:00Z", NEW_YORK)
    assert note == (
        "2026-03-08: the clock goes from 02:00 to 03:00; 02:30 does not exist on this day and fires once, at 03:00"
    )


def test_an_hourly_table_goes_on_every_hour():
    assert nexts("15 * * * *", "2026-03-08T06:00Z", 3, NEW_YORK) == [
        "2026-03-08T01:15:00-05:00",
        "2026-03-08T03:15:00-04:00",
        "2026-03-08T04:15:00-04:00",
    ]


def test_minutes_by_wildcard_are_skipped_in_the_gap_and_that_is_told():
    assert nexts("*/20 2 * * *", "2026-03-07T12:00Z", 1, NEW_YORK) == ["2026-03-09T02:00:00-04:00"]
    (note,) = told("*/20 2 * * *", "2026-03-07T12:00Z", "2026-03-09T12:00Z", NEW_YORK)
    assert "02:00, 02:20, 02:40 do not exist on this day and are skipped" in note


def test_a_repeated_time_fires_once_and_a_wildcard_both_times():
    assert nexts("30 1 * * *", "2026-10-31T12:00Z", 2, NEW_YORK) == [
        "2026-11-01T01:30:00-04:00",
        "2026-11-02T01:30:00-05:00",
    ]
    assert nexts("*/30 1 * * *", "2026-10-31T12:00Z", 4, NEW_YORK) == [
        "2026-11-01T01:00:00-04:00",
        "2026-11-01T01:30:00-04:00",
        "2026-11-01T01:00:00-05:00",
        "2026-11-01T01:30:00-05:00",
    ]
    assert (
        "comes twice on this day and fires once, the first time"
        in told("30 1 * * *", "2026-10-31T12:00Z", "2026-11-02T12:00Z", NEW_YORK)[0]
    )
    assert "fire both times" in told("*/30 1 * * *", "2026-10-31T12:00Z", "2026-11-02T12:00Z", NEW_YORK)[0]


def test_a_change_of_half_an_hour():
    assert nexts("45 1 * * *", "2026-04-04T12:00", 1, LORD_HOWE) == ["2026-04-05T01:45:00+11:00"]
    (note,) = told("45 1 * * *", "2026-04-04T12:00", "2026-04-06T12:00", LORD_HOWE)
    assert "from 02:00 to 01:30; 01:45 comes twice" in note


def test_changes_that_touch_no_time_are_not_told():
    assert told("0 12 * * *", "2026-03-07T12:00Z", "2026-11-10T12:00Z", NEW_YORK) == []
    assert told("30 2 * * *", "2026-01-01T12:00Z", "2026-12-10T12:00Z", "UTC") == []


def test_leap_days_come_in_the_end():
    assert nexts("0 0 29 2 *", "2026-03-01T00:00Z", 1, "UTC") == ["2028-02-29T00:00:00+00:00"]
    assert nexts("0 0 29 2 */7", "2033-01-01T00:00Z", 1, "UTC") == ["2060-02-29T00:00:00+00:00"]


def test_the_times_between_two_moments():
    utc = UTC
    start, end = datetime(2026, 1, 1, 0, 0, tzinfo=utc), datetime(2026, 1, 1, 0, 5, tzinfo=utc)
    found = fires_between("* * * * *", start, end, utc, 100)
    assert [moment.minute for moment in found] == [1, 2, 3, 4, 5]
    assert fires_between("* * * * *", start, end, utc, 2) == found[-2:]


def test_several_tables_come_in_order():
    zone = UTC
    start = datetime(2026, 1, 1, tzinfo=zone)
    merged = next_fires(["0 12 * * *", "0 6 * * *"], start, 3, zone)
    assert [(moment.hour, cron) for moment, cron in merged] == [(6, "0 6 * * *"), (12, "0 12 * * *"), (6, "0 6 * * *")]


def test_names_and_steps_are_read_as_the_checker_reads_them():
    assert [moment.minute for moment in fires_between("5/15 * * * *", *_day(), UTC, 4)] == [5, 20, 35, 50]
    assert next(fires("0 0 * * 7", _day()[0], UTC)).isoweekday() == 7


@pytest.mark.parametrize("name", ["Nowhere/City", "../etc/passwd", ""])
def test_an_unknown_zone(name):
    with pytest.raises(InputError, match="no time zone"):
        zone_of(name, {})


def test_the_zone_of_the_environment():
    assert zone_of(None, {"TZ": "Europe/Berlin"})[0] == "Europe/Berlin"
    assert zone_of("UTC", {"TZ": "Europe/Berlin"})[0] == "UTC"


def test_a_moment_without_offset_is_one_of_the_zone():
    zone = zone_of(NEW_YORK, {})[1]
    assert moment_of("2026-07-01T12:00", zone).isoformat() == "2026-07-01T12:00:00-04:00"
    with pytest.raises(InputError, match="no ISO time"):
        moment_of("tomorrow", zone)


def _day():
    start = datetime(2026, 1, 1, 22, 59, tzinfo=UTC)
    return start, datetime(2026, 1, 1, 23, 59, tzinfo=UTC)
