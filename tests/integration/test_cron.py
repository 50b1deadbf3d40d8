"""A real cron daemon with a real crontab, in a mount namespace of its own: nobody's own table is touched."""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conformance.programs import write_program

FOREIGN = (
    b"# kept as it is\r\n"
    b'MAILTO=""\n'
    b"\n"
    b"   # indented, \xff\xfe odd bytes\n"
    b"0 5 1 1 * /bin/echo 100\\% >/dev/null\r\n"
    b"1 1 1 1 * true # flowstone[ffffffff] main//tasks/tick#0\n"
)
WORKFLOW = """\
---
type: workflow
updated: 2026-01-01
description: Says that it was here
params: { word: { type: string } }
steps:
  - id: say
    unit: { exec: { command: ["sh", "-c", "printf %s \\"$AKM_PARAMS\\" > ticked"] } }
---

# Tick

## say

Write a file.
"""
TASK = """\
version: 4
uses: workflows/tick
inputs:
  word: { type: string, required: true }
schedule: [{ cron: "* * * * *", inputs: { word: "50% of it's \\"odd\\"" } }]
"""
BOX = """\
set -e
mount --bind "$1/spool" /var/spool/cron
mount --bind "$1/run" /run
[ ! -d /etc/cron.d ] || mount --bind "$1/empty" /etc/cron.d
[ ! -e /etc/crontab ] || mount --bind "$1/system" /etc/crontab
shift
exec "$@"
"""


SPOOL = Path("/var/spool/cron/crontabs/root")
NEEDED = (
    "these tests need mount namespaces (root with CAP_SYS_ADMIN, or sudo without a password), so that they touch "
    "nobody's crontab; as root without them, a machine on which root has no crontab"
)


class Box:
    """Commands that see a crontab spool, a /run and system tables of their own.

    Where root may make no mount namespace, as in a plain container, they borrow root's spool instead:
    only when it is empty, one test at a time, and it is left as it was found.
    """

    def __init__(self, folder: Path) -> None:
        for name in ("spool/crontabs", "run", "empty", "bundle/tasks", "bundle/workflows", "home"):
            (folder / name).mkdir(parents=True)
        (folder / "system").write_text("")
        self.folder = folder
        self.bundle = folder / "bundle"
        self.akm = str(write_program(folder, "akm"))
        self.env = {
            "PATH": os.environ["PATH"] + ":/usr/sbin:/sbin",
            "HOME": str(folder / "home"),
            "AKM_BUNDLE_DIR": str(self.bundle),
            **{name: os.environ[name] for name in ("PYTHONPATH",) if name in os.environ},
        }
        self.private = True
        self.private = self.run("true").returncode == 0
        self.spool = folder / "spool" / "crontabs" / "root" if self.private else SPOOL

    def argv(self, *words: str) -> list[str]:
        if not self.private:
            return list(words)
        root = [] if os.geteuid() == 0 else ["sudo", "-n", "--preserve-env"]
        inner = ["unshare", "--mount", "--propagation", "private", "bash", "-c", BOX, "box", str(self.folder)]
        return [*root, *inner, *words]

    def run(self, *words: str, given: bytes | None = None) -> subprocess.CompletedProcess[bytes]:
        return subprocess.run(self.argv(*words), input=given, capture_output=True, env=self.env, check=False)

    def task(self, *words: str) -> dict[str, object]:
        ended = self.run(self.akm, "task", *words)
        assert ended.returncode == 0, ended.stderr.decode() + ended.stdout.decode()
        found: dict[str, object] = json.loads(ended.stdout)
        return found

    def table(self) -> bytes:
        """What is in the spool, without the three lines that Debian's crontab puts in front."""
        lines = self.spool.read_bytes().splitlines(keepends=True) if self.spool.exists() else []
        return b"".join(lines[3:] if lines[:1] and lines[0].startswith(b"# DO NOT EDIT") else lines)


@pytest.fixture
def box(tmp_path: Path) -> Iterator[Box]:
    missing = [name for name in ("unshare", "crontab") if shutil.which(name) is None]
    assert not missing, f"these tests need {missing}: install the packages util-linux and cron (script/bootstrap tells)"
    made = Box(tmp_path)
    (made.bundle / "workflows" / "tick.md").write_text(WORKFLOW)
    (made.bundle / "tasks" / "tick.yml").write_text(TASK)
    if made.private:
        yield made
        return
    assert os.geteuid() == 0, NEEDED
    with open("/tmp/flowstone-tests-of-cron.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        assert not SPOOL.exists(), NEEDED
        yield made
        SPOOL.unlink(missing_ok=True)


@pytest.fixture
def daemon(box: Box) -> Iterator[None]:
    process = subprocess.Popen(box.argv("cron", "-f"), env=box.env, stdin=subprocess.DEVNULL)
    time.sleep(1.2)  # a table that changes within the second in which cron looked first goes unseen
    yield
    process.terminate()
    process.wait(10)


@pytest.mark.heavy
@pytest.mark.timeout(170)
def test_the_daemon_fires_a_task_that_runs_a_workflow_to_its_end(box: Box, daemon: None) -> None:
    assert box.task("enable", "tick")["added"]
    deadline = time.monotonic() + 150
    while time.monotonic() < deadline and not _completed(box):
        time.sleep(0.5)
    runs = box.task("history", "tick")["runs"]
    assert isinstance(runs, list)
    assert runs, "nothing ran"
    assert (runs[-1]["status"], runs[-1]["origin"]) == ("completed", "schedule"), runs
    assert json.loads((box.bundle / "ticked").read_text()) == {"word": '50% of it\'s "odd"'}
    assert box.task("disable", "tick")["removed"]
    assert box.table() == b""


def test_synchronising_twice_changes_nothing_and_a_foreign_crontab_survives(box: Box) -> None:
    assert box.run("crontab", "-", given=FOREIGN).returncode == 0
    assert box.table() == FOREIGN
    box.task("enable", "tick")
    with_ours = box.table()
    assert with_ours.startswith(FOREIGN)
    assert len(with_ours.splitlines()) == len(FOREIGN.splitlines()) + 1
    stamp = box.spool.stat().st_mtime_ns
    for _ in range(2):
        again = box.task("sync")
        assert [again[name] for name in ("added", "updated", "removed", "failures")] == [[], [], [], []]
        assert len(again["unchanged"]) == 1  # type: ignore[arg-type]  # a list
    assert box.table() == with_ours
    assert box.spool.stat().st_mtime_ns == stamp, "the table was installed again"
    box.task("disable", "tick")
    assert box.table() == FOREIGN


def test_a_table_without_a_line_feed_at_its_end(box: Box) -> None:
    box.spool.write_bytes(b"A=1\n" + FOREIGN.rstrip(b"\n"))
    box.spool.chmod(0o600)
    box.task("enable", "tick")
    assert box.table().startswith(b"A=1\n" + FOREIGN)
    box.task("disable", "tick")
    assert box.table() == b"A=1\n" + FOREIGN


def test_a_schedule_that_changes_and_one_that_goes(box: Box) -> None:
    box.task("enable", "tick")
    task = box.bundle / "tasks" / "tick.yml"
    task.write_text(TASK.replace("* * * * *", "5/15 2 * * MON"))
    assert len(box.task("sync", "--dry-run")["updated"]) == 1  # type: ignore[arg-type]  # a list
    assert b"\n* * * * * cd" in b"\n" + box.table()
    box.task("sync")
    assert box.table().startswith(b"5-59/15 2 * * 1 cd ")
    task.unlink()
    gone = box.run(box.akm, "task", "sync")
    assert gone.returncode == 1
    assert b"cannot be found" in gone.stdout
    assert box.table() == b""
    box.task("disable", "tick")
    assert box.task("sync")["ok"] is True


def _completed(box: Box) -> bool:
    runs = box.task("history", "tick")["runs"]
    return any(run["status"] in ("completed", "failed", "blocked") for run in runs)  # type: ignore[attr-defined]  # a list
