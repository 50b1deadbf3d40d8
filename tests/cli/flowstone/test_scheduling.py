"""`flowstone next` and `flowstone schedule` as a user sees them."""

import json
import os
import subprocess
import sys
import time
from datetime import UTC, datetime, timedelta

import pytest

from flowstone.schedule.marks import Marks

WORKFLOW = """\
name: Tick
on:
  schedule:
    - cron: "{cron}"
jobs:
  j:
    runs-on: [self-hosted]
    steps:
      - id: a
        run: sh tick.sh
"""


@pytest.fixture
def past():
    """An expression with two times within the last half hour, and none in the next minutes."""
    now = datetime.now(UTC)
    return f"{(now - timedelta(minutes=20)).minute},{(now - timedelta(minutes=10)).minute} * * * *"


@pytest.fixture
def project(tmp_path, environment, past):
    folder = tmp_path / "project"
    (folder / "wf.yml").write_text(WORKFLOW.format(cron=past))
    (folder / "tick.sh").write_text("echo tick >> ticks\n")
    return folder


@pytest.fixture
def schedule(project, environment):
    """Starts `flowstone schedule`; whatever still runs at the end is killed."""
    started = []

    def start(*words):
        code = "from flowstone.cli.flowstone.main import main; main()"
        process = subprocess.Popen(
            [sys.executable, "-c", code, "schedule", *words],
            cwd=project,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        started.append(process)
        return process

    yield start
    for process in started:
        if process.poll() is None:
            process.kill()
            process.communicate()


def looked_at(tmp_path, file, cron, number=0):
    """Leave the mark of a scheduler that looked last half an hour ago."""
    name = f"{os.path.realpath(file)}\n{number}\n{cron}"
    marks = Marks(str(tmp_path / "state/flowstone/schedule"))
    marks.claim(name, lambda mark: (datetime.now(UTC) - timedelta(minutes=30), None))


def wait_for(condition, process):
    for _ in range(400):
        if condition():
            return
        assert process.poll() is None, process.communicate()[0]
        time.sleep(0.05)
    raise AssertionError("it did not come")


def end(process):
    process.terminate()
    return process.communicate(timeout=40)[0]


def test_next_prints_one_time_a_line_and_tells_of_the_clock(run, project):
    (project / "wf.yml").write_text(WORKFLOW.format(cron="30 2 * * *"))
    done = run(
        "flowstone", "next", "wf.yml", "--from", "2026-03-07T12:00:00Z", "--count", "2", "--tz", "America/New_York"
    )
    assert done.returncode == 0
    assert done.stdout.splitlines() == [
        "# 30 2 * * * in America/New_York",
        "# 2026-03-08: the clock goes from 02:00 to 03:00; 02:30 does not exist on this day and fires once, at 03:00",
        "2026-03-08T03:00:00-04:00",
        "2026-03-09T02:30:00-04:00",
    ]


def test_next_as_json_and_of_several_tables(run, project):
    (project / "t.yml").write_text('version: 4\nrun: x\nschedule: [{ cron: "0 6 * * *" }, { cron: "0 7 1 * *" }]\n')
    words = ("next", "t.yml", "--from", "2026-01-31T00:00:00Z", "--count", "3", "--tz", "UTC")
    assert run("flowstone", *words).stdout.splitlines()[1:] == [
        "2026-01-31T06:00:00+00:00  0 6 * * *",
        "2026-02-01T06:00:00+00:00  0 6 * * *",
        "2026-02-01T07:00:00+00:00  0 7 1 * *",
    ]
    told = json.loads(run("flowstone", *words, "--json").stdout)
    assert (told["zone"], len(told["times"]), told["notes"]) == ("UTC", 3, [])


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("wf.yml", "--from", "tomorrow"), "no ISO time"),
        (("wf.yml", "--tz", "Nowhere"), "no time zone"),
        (("wf.yml", "--count", "0"), "--count"),
        (("plain.md",), "has no schedule"),
        (("bad.yml",), "never fires"),
    ],
)
def test_next_refuses(run, project, words, said):
    (project / "plain.md").write_text("---\nsteps:\n  - id: a\n---\n\n## a\n\nDo it.\n")
    (project / "bad.yml").write_text(WORKFLOW.format(cron="0 0 31 2 *"))
    done = run("flowstone", "next", *words)
    assert done.returncode == 2
    assert said in done.stderr


def test_one_run_catches_up_and_sigterm_ends_it_in_order(project, schedule, tmp_path, past):
    looked_at(tmp_path, project / "wf.yml", past)
    process = schedule("wf.yml")
    wait_for((project / "ticks").exists, process)
    time.sleep(1)
    said = end(process)
    assert process.returncode == 0
    assert (project / "ticks").read_text() == "tick\n"
    assert "2 times missed; one run catches up" in said
    assert said.endswith("schedule: ended in order\n")


def test_two_at_once_run_a_time_once(project, schedule, tmp_path, past):
    looked_at(tmp_path, project / "wf.yml", past)
    both = [schedule("wf.yml"), schedule("wf.yml")]
    wait_for((project / "ticks").exists, both[0])
    time.sleep(1.5)
    said = "".join(end(process) for process in both)
    assert (said.count("2 times missed"), said.count("run of")) == (1, 1), said
    assert (project / "ticks").read_text() == "tick\n"


def test_a_run_that_goes_on_is_stopped_and_can_be_resumed(project, schedule, run, tmp_path, past):
    (project / "tick.sh").write_text("echo tick >> ticks; [ -e enough ] || sleep 60\n")
    looked_at(tmp_path, project / "wf.yml", past)
    process = schedule("wf.yml")
    wait_for((project / "ticks").exists, process)
    said = end(process)
    assert "goes on by itself" not in said
    status = json.loads(run("flowstone", "status", "--last", "--json").stdout)
    assert status["status"] == "active"
    (project / "enough").write_text("")
    assert run("flowstone", "resume", "--last").returncode == 0


def test_a_task_gets_the_inputs_of_its_table(project, schedule, tmp_path, past):
    kid = tmp_path / "bundle/workflows/kid.md"
    kid.parent.mkdir(parents=True)
    kid.write_text(
        '---\nparams: { n: { type: integer } }\nsteps:\n  - id: a\n    unit: { exec: { command: ["sh", "-c", '
        '"echo $AKM_PARAMS > got"] } }\n---\n\n## a\n\nDo it.\n'
    )
    (project / "t.yml").write_text(
        "version: 4\nuses: workflows/kid\ninputs: { n: { type: integer, required: true } }\n"
        'schedule: [{ cron: "0 0 1 1 *", inputs: { n: 1 } }, { cron: "@PAST@", inputs: { n: 2 } }]\n'.replace(
            "@PAST@", past
        )
    )
    looked_at(tmp_path, project / "t.yml", past, 1)
    process = schedule("t.yml")
    wait_for((project / "got").exists, process)
    end(process)
    assert json.loads((project / "got").read_text()) == {"n": 2}


@pytest.mark.parametrize("words", [("none.yml",), ("wf.yml", "--window", "soon"), ("wf.yml", "--missed", "never")])
def test_schedule_refuses(run, project, words):
    assert run("flowstone", "schedule", *words).returncode == 2
