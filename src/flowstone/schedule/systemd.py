"""Rows of ours as systemd user timers: a `.timer` and a `.service` each, below the user's unit folder."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Callable, Sequence

from flowstone.errors import StoreError
from flowstone.expr.cron import CronTable, check_cron, cron_table
from flowstone.ports.activation import Missed, Row, Unschedulable
from flowstone.schedule.programs import Ended, Run
from flowstone.schedule.unit_files import file_stem, read_text, remove_file, write_file

_MARK = "# flowstone "
_DAYS = ("Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat")


class SystemdTimers:
    """The Timetable port over `systemctl --user`; `folder` holds the unit files.

    With the rule `once`, a timer that was missed while the machine was off starts at the next boot.
    """

    name = "systemd"

    def __init__(
        self, owner: str, folder: str, run: Run, which: Callable[[str], str | None], missed: Missed = Missed.ONCE
    ) -> None:
        self.owner = owner
        self._folder = folder
        self._run = run
        self._which = which
        self._missed = missed
        self.missed = (
            "skip: timers run nothing for times at which the machine was off"
            if missed is Missed.SKIP
            else "once: a timer that was missed while the machine was off starts once when it is on again"
        )

    def problem(self) -> str | None:
        if self._which("systemctl") is None:
            return "there is no systemctl program: use the crontab (akm config set scheduler.backend crontab)"
        ended = self._run(["systemctl", "--user", "show-environment"], None)
        if ended.code != 0:
            return f"systemd has no session for this user ({_said(ended)}): use the crontab, or loginctl enable-linger"
        return None

    def rows(self) -> Sequence[Row]:
        found = []
        for name in sorted(os.listdir(self._folder)) if os.path.isdir(self._folder) else []:
            if name.startswith(f"flowstone-{self.owner}-") and name.endswith(".timer"):
                row = _row_of(read_text(os.path.join(self._folder, name)), self._service_text(name), self._missed)
                if row is not None:
                    found.append(row)
        return found

    def put(self, row: Row) -> None:
        timer, service = timer_text(row, self._missed), service_text(row)
        self._usable()
        unit = self._unit(row.key)
        write_file(os.path.join(self._folder, f"{unit}.service"), service)
        write_file(os.path.join(self._folder, f"{unit}.timer"), timer)
        self._systemctl("daemon-reload")
        self._systemctl("enable", "--now", f"{unit}.timer")
        self._systemctl("restart", f"{unit}.timer")

    def remove(self, key: str) -> None:
        unit = self._unit(key)
        if not os.path.exists(os.path.join(self._folder, f"{unit}.timer")):
            return
        self._usable()
        self._systemctl("disable", "--now", f"{unit}.timer")
        for ending in ("timer", "service"):
            remove_file(os.path.join(self._folder, f"{unit}.{ending}"))
        self._systemctl("daemon-reload")

    def _unit(self, key: str) -> str:
        return f"flowstone-{self.owner}-{file_stem(key)}"

    def _service_text(self, timer: str) -> str:
        return read_text(os.path.join(self._folder, timer.removesuffix(".timer") + ".service"))

    def _usable(self) -> None:
        problem = self.problem()
        if problem is not None:
            raise StoreError(problem, code="SCHEDULER_UNAVAILABLE")

    def _systemctl(self, *words: str) -> None:
        ended = self._run(["systemctl", "--user", *words], None)
        if ended.code != 0:
            raise StoreError(f"systemctl --user {' '.join(words)}: {_said(ended)}")


def timer_text(row: Row, missed: Missed) -> str:
    """The timer unit of a row; systemd's own zone is the machine's, as cron's is."""
    lines = [f"OnCalendar={text}" for text in calendars(cron_table(row.cron))]
    persistent = "false" if missed is Missed.SKIP else "true"
    return (
        f"{_MARK}{row.key}\n# cron {row.cron}\n[Unit]\nDescription={_plain(row.ref)}\n\n[Timer]\n"
        + "\n".join(lines)
        + f"\nAccuracySec=1s\nPersistent={persistent}\n\n[Install]\nWantedBy=timers.target\n"
    )


def service_text(row: Row) -> str:
    """The service unit of a row: one command, run to its end."""
    env = "".join(f"Environment={_quoted(f'{name}={value}')}\n" for name, value in row.env)
    command = " ".join(_quoted(word) for word in row.argv)
    words = shlex.join([*(f"{name}={value}" for name, value in row.env), "--", *row.argv])
    if "\n" in words or "\n" in row.cwd:
        raise Unschedulable("a unit file cannot hold a line break in a command")
    return (
        f"{_MARK}{row.key}\n# words {words}\n# folder {row.cwd}\n[Unit]\nDescription={_plain(row.ref)}\n\n[Service]\n"
        f"Type=oneshot\n{env}WorkingDirectory={row.cwd.replace('%', '%%')}\nExecStart={command}\nStandardOutput=null\n"
    )


def calendars(table: CronTable) -> list[str]:
    """The OnCalendar lines of a table: two where either of the day fields suffices."""
    times = f"{_numbers(table.hours, 24)}:{_numbers(table.minutes, 60)}:00"
    months = _numbers(table.months, 12)
    week = ",".join(_DAYS[day] for day in table.weekdays)
    every_day, every_weekday = len(table.days) == 31, len(table.weekdays) == 7
    by_date = f"*-{months}-{_numbers(table.days, 31)} {times}"
    by_week = f"{week} *-{months}-* {times}"
    if every_weekday and table.both_days:
        return [by_date]
    if table.both_days:
        return [f"{week} {by_date}"]
    return [f"*-{months}-* {times}"] if every_day or every_weekday else [by_date, by_week]


def _row_of(timer: str, service: str, missed: Missed) -> Row | None:
    key = re.search(rf"^{_MARK}(.+)$", timer, re.MULTILINE)
    cron = re.search(r"^# cron (.+)$", timer, re.MULTILINE)
    words = re.search(r"^# words (.*)$", service, re.MULTILINE)
    folder = re.search(r"^# folder (.*)$", service, re.MULTILINE)
    if key is None:
        return None
    if cron is None or words is None or folder is None:
        return Row(key[1], "", (), "")
    row = _from_notes(key[1], cron[1], words[1], folder[1])
    intact = row is not None and service_text(row) == service and timer_text(row, missed) == timer
    return row if intact else Row(key[1], cron[1], (), "")


def _from_notes(key: str, cron: str, words: str, folder: str) -> Row | None:
    try:
        check_cron(cron)
        parts = shlex.split(words)
        middle = parts.index("--")
    except ValueError:
        return None
    env = tuple((name, value) for name, _, value in (part.partition("=") for part in parts[:middle]))
    return Row(key, cron, tuple(parts[middle + 1 :]), folder, env)


def _numbers(numbers: tuple[int, ...], whole: int) -> str:
    return "*" if len(numbers) == whole else ",".join(f"{number:02d}" for number in numbers)


def _quoted(word: str) -> str:
    escaped = word.replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%").replace("$", "$$")
    return f'"{escaped}"'


def _plain(text: str) -> str:
    return f"flowstone: {text}".replace("%", "%%")


def _said(ended: Ended) -> str:
    lines = ended.stderr.decode("utf-8", "replace").strip().splitlines()
    return lines[-1] if lines else f"exit code {ended.code}"
