"""Rows of ours as tasks of the Windows Task Scheduler: an XML definition each, below one folder."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from itertools import pairwise
from xml.sax.saxutils import escape, unescape

from flowstone.errors import StoreError
from flowstone.expr.cron import CronTable, cron_table
from flowstone.ports.activation import Row, Unschedulable
from flowstone.schedule.programs import Ended, Run
from flowstone.schedule.unit_files import file_stem

TRIGGERS = 48
"""What one task takes."""
_MONTHS = (
    "January", "February", "March", "April", "May", "June", "July", "August", "September", "October",
    "November", "December",
)  # fmt: skip
_DAYS = ("Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday")


class WindowsTasks:
    """The Timetable port over `schtasks`. A row's key, times and words stand in the task's description."""

    name = "windows"
    missed = "once: a task that was missed starts once as soon as the machine is on again"

    def __init__(self, owner: str, run: Run, which: Callable[[str], str | None], write: Callable[[bytes], str]) -> None:
        """`write` puts an XML text into a file for schtasks to read, and returns its path."""
        self.owner = owner
        self._run = run
        self._which = which
        self._write = write

    def problem(self) -> str | None:
        return None if self._which("schtasks") else "there is no schtasks program: this scheduler is that of Windows"

    def rows(self) -> Sequence[Row]:
        ended = self._schtasks("/query", "/xml", "ONE")
        return rows_of(_decoded(ended.stdout), self.owner)

    def put(self, row: Row) -> None:
        path = self._write(task_xml(row, self.owner).encode("utf-16"))
        self._schtasks("/create", "/f", "/tn", self._name(row.key), "/xml", path)

    def remove(self, key: str) -> None:
        if any(row.key == key for row in self.rows()):
            self._schtasks("/delete", "/f", "/tn", self._name(key))

    def _name(self, key: str) -> str:
        return f"\\flowstone\\{self.owner}-{file_stem(key)}"

    def _schtasks(self, *words: str) -> Ended:
        problem = self.problem()
        if problem is not None:
            raise StoreError(problem, code="SCHEDULER_UNAVAILABLE")
        ended = self._run(["schtasks", *words], None)
        if ended.code != 0:
            raise StoreError(f"schtasks {words[0]}: {_decoded(ended.stderr).strip()}")
        return ended


def task_xml(row: Row, owner: str) -> str:
    """The definition of a row. Its command starts by way of cmd, which sets the variables."""
    import json

    notes = json.dumps(["flowstone", owner, row.key, row.cron, row.argv, row.cwd, row.env])
    sets = "".join(f'set "{name}={value}" && ' for name, value in row.env)
    words = " ".join(f'"{word}"' for word in row.argv)
    if any('"' in word or "%" in word for word in (*row.argv, *(value for _, value in row.env))):
        raise Unschedulable("a command of the Windows scheduler cannot hold a quotation mark or a percent sign")
    command = f'/d /s /c "{sets}{words}"'
    triggers = "".join(f"<CalendarTrigger>{text}</CalendarTrigger>" for text in triggers_of(cron_table(row.cron)))
    return (
        '<?xml version="1.0" encoding="UTF-16"?>\n'
        '<Task version="1.2" xmlns="http://schemas.microsoft.com/windows/2004/02/mit/task">'
        f"<RegistrationInfo><Description>{escape(notes)}</Description></RegistrationInfo>"
        f"<Triggers>{triggers}</Triggers>"
        "<Settings><MultipleInstancesPolicy>IgnoreNew</MultipleInstancesPolicy>"
        "<StartWhenAvailable>true</StartWhenAvailable></Settings>"
        f"<Actions><Exec><Command>cmd</Command><Arguments>{escape(command)}</Arguments>"
        f"<WorkingDirectory>{escape(row.cwd)}</WorkingDirectory></Exec></Actions></Task>"
    )


def triggers_of(table: CronTable) -> list[str]:
    """The calendar triggers of a table: one a time of day, or a repetition where times are evenly spaced."""
    times = [(hour, minute) for hour in table.hours for minute in table.minutes]
    step = _even_step(times)
    starts = times[:1] if step else times
    repeated = f"<Repetition><Interval>PT{step}M</Interval><Duration>P1D</Duration></Repetition>" if step else ""
    made = [
        f"{repeated}<StartBoundary>2020-01-01T{hour:02d}:{minute:02d}:00</StartBoundary>{days}"
        for hour, minute in starts
        for days in _schedules(table)
    ]
    if len(made) > TRIGGERS:
        raise Unschedulable(f"its table needs {len(made)} triggers, over the {TRIGGERS} of a task")
    return made


def rows_of(xml: str, owner: str) -> list[Row]:
    """Our rows in what `schtasks /query /xml` prints."""
    import json

    rows = []
    for text in re.findall(r"<Description>(.*?)</Description>", xml, re.DOTALL):
        try:
            mark, whose, key, cron, argv, cwd, env = json.loads(unescape(text))
        except (ValueError, TypeError):
            continue
        if (mark, whose) == ("flowstone", owner):
            rows.append(Row(key, cron, tuple(argv), cwd, tuple((name, value) for name, value in env)))
    return rows


def _even_step(times: list[tuple[int, int]]) -> int | None:
    """The minutes between times that fill the day evenly from midnight's first on; None otherwise."""
    minutes = [hour * 60 + minute for hour, minute in times]
    if len(minutes) < 2:
        return None
    step = minutes[1] - minutes[0]
    even = all(later - earlier == step for earlier, later in pairwise(minutes))
    return step if even and len(minutes) * step == 24 * 60 else None


def _schedules(table: CronTable) -> list[str]:
    """Which days: two schedules where either of the day fields suffices."""
    every_day, every_weekday = len(table.days) == 31, len(table.weekdays) == 7
    months = "".join(f"<{_MONTHS[number - 1]} />" for number in table.months)
    if every_weekday and every_day and len(table.months) == 12:
        return ["<ScheduleByDay><DaysInterval>1</DaysInterval></ScheduleByDay>"]
    dates = "".join(f"<Day>{day}</Day>" for day in table.days)
    by_date = f"<ScheduleByMonth><DaysOfMonth>{dates}</DaysOfMonth><Months>{months}</Months></ScheduleByMonth>"
    if every_weekday and table.both_days:
        return [by_date]
    week = "".join(f"<{_DAYS[day]} />" for day in table.weekdays)
    if len(table.months) == 12:
        by_week = f"<ScheduleByWeek><WeeksInterval>1</WeeksInterval><DaysOfWeek>{week}</DaysOfWeek></ScheduleByWeek>"
    else:
        weeks = "".join(f"<Week>{number}</Week>" for number in (1, 2, 3, 4, "Last"))
        by_week = (
            f"<ScheduleByMonthDayOfWeek><Weeks>{weeks}</Weeks><DaysOfWeek>{week}</DaysOfWeek>"
            f"<Months>{months}</Months></ScheduleByMonthDayOfWeek>"
        )
    if every_day and table.both_days:
        return [by_week]
    if table.both_days:
        raise Unschedulable("Windows cannot ask for a date and a weekday at once")
    return [by_week] if every_weekday else [by_date] if every_day else [by_date, by_week]


def _decoded(data: bytes) -> str:
    return data.decode("utf-16" if data[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8", "replace")
