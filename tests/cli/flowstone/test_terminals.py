"""Terminals that cannot redraw, are narrow or know ASCII only; outputs that take nothing."""

import json
import re
import shlex
import subprocess
import sys

import pytest

from tests.cli.flowstone.flows import CHAIN, MAP
from tests.cli.flowstone.screens import on_a_terminal

RUN = ("run", "flow.md", "--set", 'items=["a","b"]')

SLOW = """\
apiVersion: orun.dev/v1
kind: Workflow
metadata: { name: slow }
steps:
  - name: a-step-with-a-long-name
    run: [sleep, "0.7"]
"""


@pytest.fixture
def project(tmp_path, environment):
    folder = tmp_path / "project"
    (folder / "flow.md").write_text(MAP)
    (folder / "chain.yaml").write_text(CHAIN)
    return folder


@pytest.mark.parametrize("term", ["", "dumb", "nonsense"])
def test_a_terminal_that_cannot_redraw_gets_whole_lines(project, environment, term):
    code, drawn = on_a_terminal(project, environment, *RUN, TERM=term)
    assert code == 0
    assert "\x1b" not in drawn
    assert "check: started, 2 units" in drawn
    _, status = on_a_terminal(project, environment, "status", "--watch", TERM=term)
    assert "\x1b" not in status


@pytest.mark.parametrize("term", ["xterm", "screen-256color", "vt102"])
def test_a_known_terminal_is_redrawn(project, environment, term):
    assert "\x1b[" in on_a_terminal(project, environment, *RUN, TERM=term)[1]


def test_without_colour_nothing_is_painted(project, environment):
    _, drawn = on_a_terminal(project, environment, *RUN, NO_COLOR="1")
    assert not re.search(r"\x1b\[[0-9;]*m", drawn)
    assert "\x1b[" in drawn


def test_twenty_columns_are_enough(project, environment):
    (project / "slow.yaml").write_text(SLOW)
    code, drawn = on_a_terminal(project, environment, "run", "slow.yaml", columns=20)
    assert code == 0
    view = [line for line in re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", drawn).splitlines() if "step," in line]
    assert view
    assert "running" in drawn
    assert all(len(line.strip("\r")) <= 20 for line in view)
    assert "1 units" not in drawn
    _, watched = on_a_terminal(project, environment, "status", "--watch", columns=20)
    assert all(len(line) <= 20 for line in watched.splitlines())


def test_marks_are_ascii_in_the_c_locale(project, environment):
    _, drawn = on_a_terminal(project, environment, *RUN, LC_ALL="C")
    assert "checked" in drawn
    assert drawn.isascii()
    assert "\\u" not in drawn
    assert "build:solo | built" in drawn


def test_a_pipe_of_another_encoding_gets_ascii_marks_and_whole_documents(run, project):
    ran = run("flowstone", *RUN, PYTHONIOENCODING="ascii")
    assert "build:solo | built" in ran.stdout
    shown = run("flowstone", "run", "chain.yaml", "--set", "who=Zoë → 漢", "--json", PYTHONIOENCODING="ascii")
    assert json.loads(shown.stdout)["params"]["who"] == "Zoë → 漢"


@pytest.mark.parametrize("words", ["list", "--help", "--version", "schema orun", "show flow.md --json", "lint flow.md"])
def test_a_full_stdout_is_told_in_one_line(run, project, words):
    with open("/dev/full", "w") as full:
        ended = run("flowstone", *words.split(), stdout=full)
    assert ended.returncode == 74
    assert ended.stderr == (
        "error: stdout cannot be written: No space left on device; what should have been printed is lost\n"
    )


@pytest.mark.parametrize("program", ["flowstone", "akm", "orun"])
def test_a_run_into_a_full_device_goes_on_and_is_kept(run, project, program):
    verb = {"flowstone": ["run", "flow.md"], "akm": ["workflow", "run", "./flow.md", "--items", "a"]}
    (project / "fixed").touch()
    with open("/dev/full", "w") as full:
        ended = run(program, *verb.get(program, ["workflow", "run", "chain.yaml"]), stdout=full)
    told = "stdout cannot be written: No space left on device"
    assert told in ended.stderr
    assert "Traceback" not in ended.stderr
    assert json.loads(run("flowstone", "status", "--json").stdout)["status"] in ("succeeded", "failed")
    assert ended.returncode == {"flowstone": 1, "akm": 70, "orun": 1}[program]


@pytest.mark.parametrize("words", [["--help"], RUN, ["schema", "orun"]])
def test_a_reader_that_goes_away_is_no_error(project, environment, words):
    code = "from flowstone.cli.flowstone.main import main; main()"
    command = shlex.join([sys.executable, "-c", code, *words])
    ended = subprocess.run(
        ["bash", "-c", f"{command} | true"],
        cwd=project,
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert ended.stderr == ""


@pytest.mark.parametrize(("program", "words"), [("flowstone", []), ("orun", []), ("flowstone", ["orun"])])
def test_a_bare_command_tells_its_usage_as_an_error(run, project, program, words):
    ended = run(program, *words)
    assert (ended.returncode, ended.stdout) == (2, "")
    assert ended.stderr.startswith("Usage: ")
    assert run("orun", "workflow").returncode == 0
    assert run("akm").returncode == 2
