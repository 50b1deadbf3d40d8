"""Processes that a step leaves running: the wait for them is told, and so is who outlives the run."""

import os
import re
import signal
import time

import pytest

FLOW = """\
apiVersion: orun.dev/v1
kind: Workflow
metadata: {{ name: leaves }}
steps:
  - name: leave
    run: [sh, -c, "{script}"]
"""


@pytest.fixture
def leave(run, tmp_path, environment):
    """Run a step of one shell script by a command; what its output names by pid is ended afterwards."""
    pids = []

    def call(program, script):
        (tmp_path / "project" / "leaves.yaml").write_text(FLOW.format(script=script))
        words = ["workflow", "run"] if program == "orun" else ["run"]
        started = time.monotonic()
        ended = run(program, *words, "leaves.yaml")
        pids.extend(int(pid) for pid in re.findall(r"\(pid (\d+)\)", ended.stdout))
        return ended, time.monotonic() - started

    yield call
    for pid in set(pids):
        os.kill(pid, signal.SIGKILL)


def test_one_with_a_session_of_its_own_is_named_at_the_end(leave):
    ended, took = leave("orun", "setsid sleep 60 >/dev/null 2>&1 & sleep 0.2")
    assert ended.returncode == 0
    assert took < 5
    assert re.search(r"^  ! left running by its commands, .*: sleep \(pid \d+\)$", ended.stdout, re.M)


def test_nothing_is_named_where_nothing_is_left(leave):
    ended, _ = leave("orun", "sleep 0.1 & wait")
    assert "!" not in ended.stdout


def test_the_wait_for_held_output_is_told_and_so_is_its_end(leave):
    ended, took = leave("flowstone", "echo out; setsid sleep 60 & sleep 0.2")
    assert (ended.returncode, 10 <= took < 20) == (0, True)
    lines = ended.stdout.splitlines()
    waits = next(line for line in lines if "is waited for up to 10s" in line)
    assert re.search(r'^warning: unit "leave:solo": its command has ended; .*: sleep \(pid \d+\)$', waits)
    held = next(line for line in lines if "was still held 10s after its end" in line)
    assert re.search(r"sleep \(pid \d+\)", held)
    assert any(line.startswith("warning: left running by its commands") for line in lines)
