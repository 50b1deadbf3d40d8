"""Cron expression, zone and moment → the next fire times, and what the changes of the clock do to them.

A time that the clock skips in spring fires once, right after the gap; one that it repeats in autumn
fires once, the first time. Where minute or hour begin with `*`, the table follows time as it passes:
skipped minutes do not exist, and repeated ones fire each time. That is also what Debian's cron does.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta, tzinfo
from itertools import islice

import msgspec

from flowstone.expr.cron import CronTable, cron_table, numeric_cron

HORIZON = timedelta(days=366 * 41)
"""Further ahead nothing is looked for: a leap day on a given weekday comes within 40 years."""
_TRANSITIONS = timedelta(days=366 * 3)


class ClockChange(msgspec.Struct, frozen=True):
    """The clock of a zone is set by `by` at the moment `at`; local faces before and after it."""

    at: datetime
    before: datetime
    after: datetime

    @property
    def forward(self) -> bool:
        return self.after > self.before


def fires(cron: str, after: datetime, zone: tzinfo) -> Iterator[datetime]:
    """The fire times behind `after`, in the zone, without end but for an expression that has one."""
    from cronsim import CronSim

    local = after.astimezone(zone)
    limit = after + HORIZON
    for moment in CronSim(numeric_cron(cron), local):
        if moment > limit:
            return
        yield moment.astimezone(UTC).astimezone(zone)


def next_fires(crons: list[str], after: datetime, count: int, zone: tzinfo) -> list[tuple[datetime, str]]:
    """The next fire times of several tables, in order, each with its expression."""
    import heapq

    def timed(cron: str) -> Iterator[tuple[datetime, str]]:
        return ((moment.astimezone(UTC), cron) for moment in fires(cron, after, zone))

    merged = heapq.merge(*(timed(cron) for cron in crons))
    return [(moment.astimezone(zone), cron) for moment, cron in islice(merged, count)]


def fires_between(cron: str, after: datetime, until: datetime, zone: tzinfo, most: int) -> list[datetime]:
    """The fire times behind `after` and not behind `until`, at most `most` of them, the latest."""
    from collections import deque

    found: deque[datetime] = deque(maxlen=most)
    for moment in fires(cron, after, zone):
        if moment > until:
            break
        found.append(moment)
    return list(found)


def notes(cron: str, after: datetime, until: datetime, zone: tzinfo) -> list[str]:
    """What the clock changes between two moments do to a table, a sentence for each that matters."""
    table = cron_table(cron)
    told = []
    for change in clock_changes(after, min(until, after + _TRANSITIONS), zone):
        faces = _faces(table, change)
        if faces:
            told.append(_note(table, change, faces))
    return told


def clock_changes(after: datetime, until: datetime, zone: tzinfo) -> list[ClockChange]:
    """The moments at which the offset of a zone changes."""
    found = []
    moment = after.astimezone(UTC)
    end = until.astimezone(UTC)
    while moment < end:
        later = min(moment + timedelta(hours=12), end)
        if moment.astimezone(zone).utcoffset() != later.astimezone(zone).utcoffset():
            found.append(_change(moment, later, zone))
        moment = later
    return found


def _change(low: datetime, high: datetime, zone: tzinfo) -> ClockChange:
    offset = low.astimezone(zone).utcoffset()
    while high - low > timedelta(seconds=1):
        middle = low + (high - low) / 2
        if middle.astimezone(zone).utcoffset() == offset:
            low = middle
        else:
            high = middle
    at = high.replace(microsecond=0)
    before = at.replace(tzinfo=None) + (offset or timedelta())
    return ClockChange(at, before, at.astimezone(zone).replace(tzinfo=None))


def _faces(table: CronTable, change: ClockChange) -> list[datetime]:
    """The local times of a table that the change skips or repeats."""
    face, end = sorted((change.before, change.after))
    found = []
    while face < end:
        if _matches(table, face):
            found.append(face)
        face += timedelta(minutes=1)
    return found


def _matches(table: CronTable, face: datetime) -> bool:
    if face.minute not in table.minutes or face.hour not in table.hours or face.month not in table.months:
        return False
    by_date, by_week = face.day in table.days, face.isoweekday() % 7 in table.weekdays
    return by_date and by_week if table.both_days else by_date or by_week


def _note(table: CronTable, change: ClockChange, faces: list[datetime]) -> str:
    shown = ", ".join(f"{face:%H:%M}" for face in faces[:3]) + (" …" if len(faces) > 3 else "")
    moved = f"{change.before:%Y-%m-%d}: the clock goes from {change.before:%H:%M} to {change.after:%H:%M}"
    do, be, end = ("does", "is", "s") if len(faces) == 1 else ("do", "are", "")
    if change.forward:
        fate = f"{be} skipped" if table.wild else f"fire{end} once, at {change.after:%H:%M}"
        return f"{moved}; {shown} {do} not exist on this day and {fate}"
    fate = f"fire{end} both times" if table.wild else f"fire{end} once, the first time"
    return f"{moved}; {shown} come{end} twice on this day and {fate}"
