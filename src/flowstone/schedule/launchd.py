"""Rows of ours as launchd agents of a macOS user: a property list each, below LaunchAgents."""

from __future__ import annotations

import os
import plistlib
from collections.abc import Callable, Sequence
from itertools import product
from typing import Any
from xml.parsers.expat import ExpatError

from flowstone.errors import StoreError
from flowstone.expr.cron import CronTable, cron_table
from flowstone.ports.activation import Row, Unschedulable
from flowstone.schedule.programs import Run
from flowstone.schedule.unit_files import file_stem, read_text, remove_file, write_file

INTERVALS = 1_000
"""Calendar entries of one agent; a table that needs more is refused."""


class LaunchAgents:
    """The Timetable port over `launchctl`; `domain` is that of the user's session (`gui/501`)."""

    name = "launchd"
    missed = "once: launchd starts an agent once when the machine wakes up; times at which it was off are skipped"

    def __init__(self, owner: str, folder: str, domain: str, run: Run, which: Callable[[str], str | None]) -> None:
        self.owner = owner
        self._folder = folder
        self._domain = domain
        self._run = run
        self._which = which

    def problem(self) -> str | None:
        return None if self._which("launchctl") else "there is no launchctl program: launchd is macOS's scheduler"

    def rows(self) -> Sequence[Row]:
        names = sorted(os.listdir(self._folder)) if os.path.isdir(self._folder) else []
        front = f"flowstone.{self.owner}."
        rows = [_row_of(os.path.join(self._folder, name)) for name in names if name.startswith(front)]
        return [row for row in rows if row is not None]

    def put(self, row: Row) -> None:
        label = self._label(row.key)
        text = plist_text(label, row)
        self._usable()
        path = self._path(label)
        self._unload(label)
        write_file(path, text)
        ended = self._run(["launchctl", "bootstrap", self._domain, path], None)
        if ended.code != 0:
            remove_file(path)
            raise StoreError(f"launchctl did not take {label}: {ended.stderr.decode('utf-8', 'replace').strip()}")

    def remove(self, key: str) -> None:
        label = self._label(key)
        if os.path.exists(self._path(label)):
            self._usable()
            self._unload(label)
            remove_file(self._path(label))

    def _label(self, key: str) -> str:
        return f"flowstone.{self.owner}.{file_stem(key)}"

    def _path(self, label: str) -> str:
        return os.path.join(self._folder, f"{label}.plist")

    def _unload(self, label: str) -> None:
        """An agent that is not loaded is no failure."""
        self._run(["launchctl", "bootout", f"{self._domain}/{label}"], None)

    def _usable(self) -> None:
        problem = self.problem()
        if problem is not None:
            raise StoreError(problem, code="SCHEDULER_UNAVAILABLE")


def plist_text(label: str, row: Row) -> str:
    """The property list of a row; what launchd does not know stands in it under our name."""
    document = {
        "Label": label,
        "ProgramArguments": list(row.argv),
        "WorkingDirectory": row.cwd,
        "EnvironmentVariables": dict(row.env),
        "StandardOutPath": "/dev/null",
        "StartCalendarInterval": intervals(cron_table(row.cron)),
        "Flowstone": {"key": row.key, "cron": row.cron},
    }
    return plistlib.dumps(document).decode("utf-8")


def intervals(table: CronTable) -> list[dict[str, int]]:
    """The calendar entries of a table. launchd asks for all fields, so that either-or becomes two lists."""
    days = [{}] if len(table.days) == 31 else [{"Day": day} for day in table.days]
    week = [{}] if len(table.weekdays) == 7 else [{"Weekday": day} for day in table.weekdays]
    if table.both_days:
        dates: list[dict[str, int]] = [{**day, **weekday} for day, weekday in product(days, week)]
    else:
        dates = [{}] if {} in (*days, *week) else [*days, *week]
    hours = [{}] if len(table.hours) == 24 else [{"Hour": hour} for hour in table.hours]
    minutes = [{}] if len(table.minutes) == 60 else [{"Minute": minute} for minute in table.minutes]
    months = [{}] if len(table.months) == 12 else [{"Month": month} for month in table.months]
    count = len(dates) * len(hours) * len(minutes) * len(months)
    if count > INTERVALS:
        raise Unschedulable(f"its table needs {count} calendar entries, over the {INTERVALS} of an agent")
    return [{**one, **two, **three, **four} for one, two, three, four in product(months, dates, hours, minutes)]


def _row_of(path: str) -> Row | None:
    try:
        found: Any = plistlib.loads(read_text(path).encode("utf-8"))
        ours = found["Flowstone"]
        key, cron = str(ours["key"]), str(ours["cron"])
    except (plistlib.InvalidFileException, ExpatError, ValueError, KeyError, TypeError, IndexError):
        return None
    env = tuple((str(name), str(value)) for name, value in found.get("EnvironmentVariables", {}).items())
    row = Row(key, cron, tuple(map(str, found.get("ProgramArguments", ()))), str(found.get("WorkingDirectory")), env)
    return row if found.get("StartCalendarInterval") == intervals(cron_table(cron)) else Row(key, "", (), "")
