"""systemd timers, launchd agents and Windows tasks: what is written, read back, and refused."""

from __future__ import annotations

import plistlib
import shutil
import subprocess
import xml.etree.ElementTree as tree
from datetime import datetime, timedelta

import pytest

from flowstone.errors import StoreError
from flowstone.expr.cron import cron_table
from flowstone.ports.activation import Missed, Row, Unschedulable
from flowstone.schedule.launchd import LaunchAgents, intervals
from flowstone.schedule.programs import Ended, runner
from flowstone.schedule.registry import Host, timetable_of
from flowstone.schedule.systemd import SystemdTimers, calendars, timer_text
from flowstone.schedule.times import fires, fires_between
from flowstone.schedule.windows import WindowsTasks, rows_of, task_xml, triggers_of
from flowstone.schedule.zone import zone_of

ROW = Row(
    "main//tasks/nightly#0",
    "30 2 13 * FRI",
    ("/opt/a b/akm", "task", "run", "nightly", "--who", "100% $HOME \\"),
    "/home/ada/akm",
    (("AKM_EVENT_SOURCE", "schedule"),),
)
TABLES = ["* * * * *", "30 2 * * *", "*/20 2 * * *", "0 9 13 * 5", "0 9 */2 * 1", "0 0 1 1 0", "5/15 3-5 * JAN,JUL *"]


class Calls:
    def __init__(self) -> None:
        self.argv: list[list[str]] = []
        self.answers: dict[str, Ended] = {}

    def run(self, argv, given=None):
        self.argv.append(list(argv))
        return self.answers.get(" ".join(argv[:3]), Ended(0, b"", b""))


def found(name: str) -> str:
    return f"/usr/bin/{name}"


def test_systemd_units_are_written_enabled_and_taken_away(tmp_path):
    calls = Calls()
    timers = SystemdTimers("0123abcd", str(tmp_path / "user"), calls.run, found)
    assert timers.rows() == []
    timers.put(ROW)
    assert timers.rows() == [ROW]
    names = sorted(path.name for path in (tmp_path / "user").iterdir())
    assert [name.rpartition(".")[2] for name in names] == ["service", "timer"]
    unit = names[1]
    assert ["systemctl", "--user", "enable", "--now", unit] in calls.argv
    service = (tmp_path / "user" / names[0]).read_text()
    assert 'ExecStart="/opt/a b/akm" "task" "run" "nightly" "--who" "100%% $$HOME \\\\"' in service
    assert "WorkingDirectory=/home/ada/akm" in service
    timers.remove(ROW.key)
    assert ["systemctl", "--user", "disable", "--now", unit] in calls.argv
    assert list((tmp_path / "user").iterdir()) == []


def test_an_altered_unit_reads_as_another_row(tmp_path):
    timers = SystemdTimers("0123abcd", str(tmp_path), Calls().run, found)
    timers.put(ROW)
    (service,) = tmp_path.glob("*.service")
    service.write_text(service.read_text().replace("nightly", "weekly"))
    (row,) = timers.rows()
    assert row.key == ROW.key
    assert row != ROW


def test_units_of_others_are_not_ours(tmp_path):
    SystemdTimers("0123abcd", str(tmp_path), Calls().run, found).put(ROW)
    (tmp_path / "backup.timer").write_text("[Timer]\n")
    assert SystemdTimers("ffff0000", str(tmp_path), Calls().run, found).rows() == []


def test_the_rule_for_missed_times_is_the_timers():
    assert "Persistent=true" in timer_text(ROW, Missed.ONCE)
    assert "Persistent=false" in timer_text(ROW, Missed.SKIP)


def test_another_rule_for_missed_times_makes_another_row(tmp_path):
    SystemdTimers("0123abcd", str(tmp_path), Calls().run, found, Missed.ONCE).put(ROW)
    (row,) = SystemdTimers("0123abcd", str(tmp_path), Calls().run, found, Missed.SKIP).rows()
    assert row != ROW


def test_systemd_without_a_session_says_so():
    calls = Calls()
    calls.answers["systemctl --user show-environment"] = Ended(1, b"", b"Failed to connect to bus\n")
    timers = SystemdTimers("0123abcd", "/nowhere", calls.run, found)
    assert "Failed to connect to bus" in str(timers.problem())
    with pytest.raises(StoreError, match="crontab"):
        timers.put(ROW)


@pytest.mark.parametrize(
    ("cron", "lines"),
    [
        ("30 2 * * *", ["*-*-* 02:30:00"]),
        ("0 9 13 * 5", ["*-*-13 09:00:00", "Fri *-*-* 09:00:00"]),
        ("0 9 */16 * 1", ["Mon *-*-01,17 09:00:00"]),
        ("0 9 1-31 * 1", ["*-*-* 09:00:00"]),
    ],
)
def test_calendars(cron, lines):
    assert calendars(cron_table(cron)) == lines


@pytest.mark.parametrize("cron", TABLES)
def test_systemd_reads_the_same_times(cron):
    """By hand, minute by minute over twenty days; where systemd's own reader is installed, by that too."""
    zone = zone_of("UTC", {})[1]
    start, end = datetime(2026, 1, 31, 23, 59, tzinfo=zone), datetime(2026, 2, 20, tzinfo=zone)
    lines = calendars(cron_table(cron))
    minutes = (start + timedelta(minutes=number) for number in range(1, int((end - start).total_seconds()) // 60))
    expected = [moment for moment in fires_between(cron, start, end, zone, 100_000) if moment < end]
    assert [moment for moment in minutes if any(_elapses(line, moment) for line in lines)] == expected
    program = shutil.which("systemd-analyze")
    if program is not None:
        first = next(fires(cron, start, zone))
        told = "".join(_analyzed(program, line) for line in lines)
        assert f"{first:%a %Y-%m-%d %H:%M:%S} UTC" in told


def test_launchd_agents_are_written_loaded_and_taken_away(tmp_path):
    calls = Calls()
    agents = LaunchAgents("0123abcd", str(tmp_path / "LaunchAgents"), "gui/501", calls.run, found)
    agents.put(ROW)
    assert agents.rows() == [ROW]
    (path,) = (tmp_path / "LaunchAgents").iterdir()
    document = plistlib.loads(path.read_bytes())
    assert document["ProgramArguments"] == list(ROW.argv)
    assert document["StartCalendarInterval"] == [
        {"Day": 13, "Hour": 2, "Minute": 30},
        {"Weekday": 5, "Hour": 2, "Minute": 30},
    ]
    assert ["launchctl", "bootstrap", "gui/501", str(path)] in calls.argv
    agents.remove(ROW.key)
    assert ["launchctl", "bootout", f"gui/501/{path.name.removesuffix('.plist')}"] in calls.argv
    assert agents.rows() == []


@pytest.mark.parametrize("text", ["", "no list", "<plist><dict/></plist>", "<plist>"])
def test_files_that_are_no_agents_of_ours(tmp_path, text):
    (tmp_path / "flowstone.0123abcd.x.plist").write_text(text)
    assert LaunchAgents("0123abcd", str(tmp_path), "gui/501", Calls().run, found).rows() == []


def test_an_agent_that_launchd_does_not_take_is_not_left_behind(tmp_path):
    calls = Calls()
    calls.answers["launchctl bootstrap gui/501"] = Ended(5, b"", b"Bootstrap failed: 5\n")
    agents = LaunchAgents("0123abcd", str(tmp_path), "gui/501", calls.run, found)
    with pytest.raises(StoreError, match="Bootstrap failed"):
        agents.put(ROW)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("cron", TABLES)
def test_launchd_entries_mean_the_times_of_the_table(cron):
    """launchd fires where all fields of an entry fit: counted by hand, minute by minute over twenty days."""
    entries = intervals(cron_table(cron))
    zone = zone_of("UTC", {})[1]
    start, end = datetime(2026, 1, 31, 23, 59, tzinfo=zone), datetime(2026, 2, 20, tzinfo=zone)
    minutes = (start + timedelta(minutes=number) for number in range(1, int((end - start).total_seconds()) // 60))
    assert [moment for moment in minutes if any(_fits(entry, moment) for entry in entries)] == [
        moment for moment in fires_between(cron, start, end, zone, 100_000) if moment < end
    ]


def test_a_table_too_wide_for_launchd_is_refused():
    with pytest.raises(Unschedulable, match="calendar entries"):
        intervals(cron_table("1-59/2 1-23/2 1-30 1-11 *"))


def test_windows_tasks_are_written_and_read_back(tmp_path):
    row = Row(ROW.key, ROW.cron, ("C:\\akm.exe", "task", "run", "a&b"), "C:\\akm", ROW.env)
    xml = task_xml(row, "0123abcd")
    root = tree.fromstring(xml.encode("utf-16"))
    assert root.tag.endswith("Task")
    assert rows_of(xml, "0123abcd") == [row]
    assert rows_of(xml, "ffff0000") == []
    calls = Calls()
    calls.answers["schtasks /query /xml"] = Ended(0, xml.encode("utf-16"), b"")
    tasks = WindowsTasks("0123abcd", calls.run, found, lambda data: "C:\\temp\\x.xml")
    tasks.put(row)
    assert calls.argv[-1][:4] == ["schtasks", "/create", "/f", "/tn"]
    assert tasks.rows() == [row]
    tasks.remove(row.key)
    assert calls.argv[-1][:3] == ["schtasks", "/delete", "/f"]


def test_windows_triggers():
    assert "PT15M" in triggers_of(cron_table("*/15 * * * *"))[0]
    assert len(triggers_of(cron_table("0 6,17 * * *"))) == 2
    assert len(triggers_of(cron_table("0 6 13 * FRI"))) == 2
    with pytest.raises(Unschedulable, match="date and a weekday"):
        triggers_of(cron_table("0 6 */2 * 1"))
    with pytest.raises(Unschedulable, match="triggers"):
        triggers_of(cron_table("1,2,3 0-22 * * *"))
    with pytest.raises(Unschedulable, match="quotation mark"):
        task_xml(Row("k#0", "* * * * *", ('say "x"',), "C:\\"), "o")


@pytest.mark.parametrize(
    ("platform", "backend", "name"),
    [
        ("linux", None, "crontab"),
        ("darwin", None, "launchd"),
        ("win32", None, "windows"),
        ("linux", "systemd", "systemd"),
    ],
)
def test_the_scheduler_of_a_machine(platform, backend, name):
    host = Host(env={"PATH": "/nowhere"}, home="/home/ada", platform=platform, owner="o", backend=backend)
    timetable = timetable_of(host)
    assert timetable.name == name
    assert timetable.problem() is not None


def test_a_program_that_cannot_be_run_is_an_error_of_ours(tmp_path):
    ended = runner({"PATH": "/usr/bin:/bin"})(["cat"], b"in\xff")
    assert ended == Ended(0, b"in\xff", b"")
    with pytest.raises(StoreError, match="cannot be run"):
        runner({"PATH": "/nowhere"})(["no-such-program"], None)


def _fits(entry: dict[str, int], moment: datetime) -> bool:
    facts = {
        "Minute": moment.minute,
        "Hour": moment.hour,
        "Day": moment.day,
        "Month": moment.month,
        "Weekday": moment.isoweekday() % 7,
    }
    return all(facts[name] == value for name, value in entry.items())


def _elapses(calendar: str, moment: datetime) -> bool:
    """Whether an OnCalendar line of ours fits a minute: `[Days] *-months-days hours:minutes:00`."""
    *week, date, clock = calendar.split()
    _, months, days = date.split("-")
    hours, minutes, _ = clock.split(":")
    fields = [(months, moment.month), (days, moment.day), (hours, moment.hour), (minutes, moment.minute)]
    by_week = not week or f"{moment:%a}" in week[0].split(",")
    return by_week and all(field == "*" or number in map(int, field.split(",")) for field, number in fields)


def _analyzed(program: str, calendar: str) -> str:
    argv = [program, "calendar", "--iterations=8", "--base-time=2026-01-31 23:59:00 UTC", calendar]
    env = {"TZ": "UTC", "LC_ALL": "C"}
    return subprocess.run(argv, capture_output=True, text=True, check=True, env=env).stdout
