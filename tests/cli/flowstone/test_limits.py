"""Limits across runs and the notification command, with real processes."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time

import pytest

WORK = """\
apiVersion: orun.dev/v1
kind: Workflow
metadata: {{ name: work }}
inputs: {{ n: {{ type: string }} }}
steps:
  - {{ name: a, run: [sh, -c, "echo {{{{ inputs.n }}}}+ >> {log}; sleep {nap}; echo {{{{ inputs.n }}}}- >> {log}"] }}
"""
CODE = "from flowstone.cli.flowstone.main import main; main()"


@pytest.fixture
def project(tmp_path, run):
    folder = tmp_path / "project"
    (folder / "work.yaml").write_text(WORK.format(log=tmp_path / "log", nap=0.5))
    (folder / "long.yaml").write_text(WORK.format(log=tmp_path / "log", nap=60))
    limits = {"work": {"max": 1, "workflows": ["work.yaml", "long.yaml"]}}
    assert run("akm", "config", "set", "workflow.limits", json.dumps(limits)).returncode == 0
    return folder


@pytest.fixture
def begin(project, environment):
    """Start `flowstone run` beside the test; what still runs at its end is killed."""
    begun = []

    def call(*words):
        process = subprocess.Popen(
            [sys.executable, "-c", CODE, "run", *words],
            cwd=project,
            env={**os.environ, **environment},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        begun.append(process)
        return process

    yield call
    for process in begun:
        if process.poll() is None:
            process.kill()
        process.communicate()


def until(condition):
    deadline = time.monotonic() + 30
    while not (found := condition()):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    return found


def marks(tmp_path):
    log = tmp_path / "log"
    return log.read_text().split() if log.exists() else []


def waiting(run, count):
    return run("flowstone", "list").stdout.count("waits under the limit") == count


def test_further_runs_wait_in_the_order_in_which_they_came(begin, run, tmp_path):
    first = begin("long.yaml", "--set", "n=1")
    until(lambda: marks(tmp_path))
    others = []
    for number in (2, 3, 4):
        others.append(begin("work.yaml", "--set", f"n={number}"))
        until(lambda count=number - 1: waiting(run, count))
    shown = run("flowstone", "status", "--last").stdout
    assert 'waiting under the limit "work" (1 at a time) behind 3 runs' in shown
    first.send_signal(signal.SIGTERM)
    assert [process.wait(60) for process in others] == [0, 0, 0]
    assert marks(tmp_path) == ["1+", "2+", "2-", "3+", "3-", "4+", "4-"]


def test_a_waiting_run_that_is_killed_is_not_lost_and_holds_nobody_up(begin, run, tmp_path):
    first = begin("long.yaml", "--set", "n=1")
    until(lambda: marks(tmp_path))
    second = begin("work.yaml", "--set", "n=2")
    until(lambda: waiting(run, 1))
    found = json.loads(run("flowstone", "status", "--last", "--json").stdout)["run"]
    second.kill()
    second.wait()
    third = begin("work.yaml", "--set", "n=3")
    until(lambda: waiting(run, 1))
    first.send_signal(signal.SIGTERM)
    assert third.wait(60) == 0
    assert run("flowstone", "resume", found).returncode == 0
    assert marks(tmp_path) == ["1+", "3+", "3-", "2+", "2-"]


def test_older_runs_are_given_up_only_when_asked(begin, run, tmp_path):
    begin("long.yaml", "--set", "n=1")
    until(lambda: marks(tmp_path))
    newer = begin("work.yaml", "--set", "n=2", "--cancel-older")
    told, _ = newer.communicate(timeout=60)
    assert newer.returncode == 0
    assert "is ended and given up" in told
    assert marks(tmp_path) == ["1+", "2+", "2-"]
    assert [line.split()[1] for line in run("flowstone", "list").stdout.splitlines()] == ["succeeded", "abandoned"]


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_while_waiting_leaves_the_run_to_be_taken_up(begin, run, tmp_path, number, code):
    begin("long.yaml", "--set", "n=1")
    until(lambda: marks(tmp_path))
    second = begin("work.yaml", "--set", "n=2")
    until(lambda: waiting(run, 1))
    second.send_signal(number)
    said, told = second.communicate(timeout=60)
    assert (second.returncode, "Traceback" in told, "flowstone resume" in said + told) == (code, False, True)
    assert run("flowstone", "list").stdout.splitlines()[0].split()[1] == "active"


@pytest.mark.parametrize(
    "limits",
    ['{"a": {"max": 0, "workflows": ["x"]}}', '{"a": {"max": 1}}', '{"A b": {"max": 1, "workflows": ["x"]}}', "[]"],
)
def test_a_limit_that_is_none_is_refused(run, tmp_path, limits):
    assert run("akm", "config", "set", "workflow.limits", limits).returncode != 0


def notifies(run, tmp_path, script, **fields):
    hook = {"command": ["sh", "-c", script], **fields}
    assert run("akm", "config", "set", "workflow.notify", json.dumps(hook)).returncode == 0


def test_a_command_is_told_of_the_end(run, project, tmp_path):
    notifies(run, tmp_path, f"cat > {tmp_path}/told; echo $FLOWSTONE_OCCASION > {tmp_path}/occasion")
    assert run("flowstone", "run", "work.yaml", "--set", "n=1").returncode == 0
    told = json.loads((tmp_path / "told").read_text())
    assert (told["status"], told["title"]) == ("succeeded", "work")
    assert (tmp_path / "occasion").read_text() == "success\n"


def test_it_is_told_only_of_what_it_asked_for(run, project, tmp_path):
    notifies(run, tmp_path, f"cat > {tmp_path}/told", on=["failure"])
    assert run("flowstone", "run", "work.yaml", "--set", "n=1").returncode == 0
    assert not (tmp_path / "told").exists()
    (project / "bad.yaml").write_text(
        'apiVersion: orun.dev/v1\nkind: Workflow\nmetadata: { name: bad }\nsteps: [{ name: a, run: ["false"] }]\n'
    )
    assert run("flowstone", "run", "bad.yaml").returncode == 1
    assert json.loads((tmp_path / "told").read_text())["status"] == "failed"


@pytest.mark.parametrize("script", ["exit 3", "echo no network; exit 1"])
def test_its_failure_is_told_and_never_fatal(run, project, tmp_path, script):
    notifies(run, tmp_path, script)
    ended = run("flowstone", "run", "work.yaml", "--set", "n=1")
    assert ended.returncode == 0
    assert "warning: the notification command sh ended with" in ended.stdout


def test_a_program_that_is_missing_is_told(run, project, tmp_path):
    assert run("akm", "config", "set", "workflow.notify", '{"command": ["no-such-program"]}').returncode == 0
    ended = run("flowstone", "run", "work.yaml", "--set", "n=1")
    assert (ended.returncode, "could not be started" in ended.stdout) == (0, True)
