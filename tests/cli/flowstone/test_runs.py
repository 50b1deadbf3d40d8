"""The verbs of flowstone that start, drive, show and end runs, as a person uses them."""

import json
import re
import signal
import subprocess
import sys
import time

import pytest

from tests.cli.flowstone.flows import BROKEN, CHAIN, MAP, NAP
from tests.cli.flowstone.screens import on_a_terminal

ITEMS = 'items=["a","bad","c"]'


@pytest.fixture
def project(tmp_path, run):
    folder = tmp_path / "project"
    (folder / "flow.md").write_text(MAP)
    (folder / "chain.yaml").write_text(CHAIN)
    (folder / "nap.yaml").write_text(NAP)
    (folder / "broken.yaml").write_text(BROKEN)
    return folder


def status(run, *argv):
    ended = run("flowstone", "status", "--last", "--json", *argv)
    assert ended.returncode == 0
    return json.loads(ended.stdout)


def test_a_failure_a_fix_and_a_resume(run, project):
    failed = run("flowstone", "run", "flow.md", "--set", "version=1.10", "--set", ITEMS)
    assert failed.returncode == 1
    assert "go on with:  flowstone resume --last" in failed.stderr
    assert re.search(r'^check\.unit:[0-9a-f]{12} │ checked "a"$', failed.stdout, re.M)
    assert status(run)["params"]["version"] == "1.10"

    units = run("flowstone", "status", "--last", "--units").stdout
    assert "non_zero_exit" in units
    assert "1 failed" in units

    (project / "fixed").touch()
    resumed = run("flowstone", "resume", "--last")
    assert resumed.returncode == 0
    assert "build:" not in resumed.stdout
    assert 'checked "a"' not in resumed.stdout
    assert status(run)["steps"][1]["output"] == ['checked "a"', 'checked "bad"', 'checked "c"']
    assert "reused" in run("flowstone", "why", "--last", "check[0]").stdout
    assert "the attempt before failed" in run("flowstone", "why", "check[1]").stdout


def test_a_run_of_the_other_language_is_the_last_one(run, project):
    run("flowstone", "run", "flow.md", "--set", "items=[]")
    (project / "fixed").touch()
    ended = run("flowstone", "run", "chain.yaml", "--set", "who=1e99")
    assert ended.returncode == 0
    found = status(run)
    assert (found["language"], found["status"]) == ("orun", "succeeded")
    assert found["outputs"] == {"said": "hello 1e99\n"}
    listed = json.loads(run("flowstone", "list", "--json").stdout)["runs"]
    assert [entry["language"] for entry in listed] == ["orun", "akm"]


def test_a_changed_source_is_told_once_or_refused(run, project):
    run("flowstone", "run", "flow.md", "--set", ITEMS)
    (project / "flow.md").write_text(MAP + "\nMore.\n")
    resumed = run("flowstone", "resume", "--last")
    assert resumed.stderr.count("the source has changed") == 1

    run("flowstone", "run", "chain.yaml")
    (project / "chain.yaml").write_text(CHAIN + "\n")
    refused = run("flowstone", "resume", "--last")
    assert refused.returncode == 2
    assert re.search(r"digest changed \(sha256:[0-9a-f]{64} → sha256:[0-9a-f]{64}\)", refused.stderr)


def test_abandoned_runs_cannot_go_on(run, project):
    run("flowstone", "run", "flow.md", "--set", "items=[]", "--max-steps", "1")
    assert run("flowstone", "abandon", "--last").stdout.startswith("abandoned ")
    assert status(run)["status"] == "abandoned"
    assert run("flowstone", "abandon", "--last").returncode == 2


def test_max_steps_and_timeout_leave_a_run_that_goes_on(run, project):
    spent = run("flowstone", "run", "flow.md", "--set", "items=[]", "--max-steps", "1")
    assert spent.returncode == 1
    assert [step["status"] for step in status(run)["steps"]] == ["succeeded", "pending"]
    assert run("flowstone", "resume").returncode == 0
    late = run("flowstone", "run", "nap.yaml", "--timeout", "200ms")
    assert late.returncode == 1
    assert "interrupted (timeout)" in late.stderr
    assert status(run)["interrupted"] == "timeout"


def test_json_is_one_document_and_progress_is_on_stderr(run, project):
    ended = run("flowstone", "run", "flow.md", "--set", 'items=["a"]', "--json")
    assert json.loads(ended.stdout)["status"] == "succeeded"
    assert "build: started" in ended.stderr


def test_unknown_names_are_refused_with_a_suggestion(run, project):
    for file, name, wanted in (("flow.md", "verson", "version"), ("chain.yaml", "wo", "who")):
        refused = run("flowstone", "run", file, "--set", f"{name}=1")
        assert refused.returncode == 2
        assert name in refused.stderr
        assert f"Did you mean {wanted}?" in refused.stderr
    assert run("flowstone", "run", "flow.md", "--set", "x").returncode == 2
    assert "No run was started" in run("flowstone", "status").stderr


def test_help_of_a_file_lists_its_parameters(run, project):
    shown = run("flowstone", "run", "chain.yaml", "--help").stdout
    assert "who" in shown
    assert "Who is greeted" in shown
    assert 'default "World"' in shown


def test_mistakes_are_shown_with_their_line_and_nothing_starts(run, project):
    refused = run("flowstone", "run", "broken.yaml")
    assert refused.returncode == 2
    assert "broken.yaml:7:5: error:" in refused.stderr
    assert "^" in refused.stderr
    assert "nothing was started" in refused.stderr


def test_the_page_of_a_run(run, project):
    run("flowstone", "run", "flow.md", "--set", ITEMS)
    page = run("flowstone", "status", "--format", "html").stdout
    assert page.startswith("<!doctype html>")
    assert "non_zero_exit" in page
    assert "http" not in page.replace('xmlns="http://www.w3.org/2000/svg"', "")


def test_watch_ends_with_the_run(run, project):
    run("flowstone", "run", "flow.md", "--set", ITEMS)
    assert run("flowstone", "status", "--watch").stdout.startswith("Checked build: failed")


@pytest.mark.parametrize("argv", [["status", "nope-nope"], ["why", "--last"], ["resume", "x", "--last"]])
def test_what_cannot_be_found(run, project, argv):
    run("flowstone", "run", "flow.md", "--set", "items=[]")
    ended = run("flowstone", *argv)
    assert ended.returncode in (1, 2)
    assert ended.stderr.startswith("error: ")
    assert "Traceback" not in ended.stderr


@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)], ids=["int", "term", "hup"]
)
def test_signals(project, environment, number, code):
    process = subprocess.Popen(
        [sys.executable, "-c", "from flowstone.cli.flowstone.main import main; main()", "run", "nap.yaml"],
        cwd=project,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout.readline() == "nap: started\n"
    time.sleep(0.2)
    process.send_signal(number)
    _, said = process.communicate(timeout=30)
    assert process.returncode == code
    assert "nothing that is done is lost" in said


def test_a_terminal_gets_a_live_view_and_a_summary(project, environment):
    code, drawn = on_a_terminal(project, environment, "run", "flow.md", "--set", 'items=["a","b"]')
    assert code == 0
    assert "\x1b[" in drawn
    assert re.search(r"check.*2/2 units", drawn)
    assert "checked" in drawn


def test_no_color_on_a_terminal_means_no_colour(project, environment):
    for argv in (["run", "flow.md", "--set", ITEMS], ["status"], ["lint", "broken.yaml"]):
        _, drawn = on_a_terminal(project, environment, *argv, NO_COLOR="1")
        assert not re.search(r"\x1b\[[0-9;]*[34][0-9]m", drawn)


def test_a_pipe_gets_no_escapes(run, project):
    for argv in (["run", "flow.md", "--set", ITEMS], ["status"], ["lint", "broken.yaml"], ["list"]):
        ended = run("flowstone", *argv, TERM="xterm", FORCE_COLOR="1")
        assert "\x1b" not in ended.stdout + ended.stderr
        assert "\r" not in ended.stdout + ended.stderr


def test_a_nested_reference_that_cannot_be_fetched_starts_nothing(run, project):
    remote = "steps:\n  - name: s\n    workflow: github:acme/flows@v1//nap.yaml\n"
    (project / "parent.yaml").write_text(NAP.split("steps:")[0] + remote)
    refused = run("flowstone", "run", "parent.yaml", ORUN_GITHUB_API_URL="http://127.0.0.1:1")
    assert refused.returncode == 2
    assert "parent.yaml:6:15: error: step s: workflow github:acme/flows@v1//nap.yaml: fetch workflow" in refused.stderr
    assert "nothing listens there" in refused.stderr
    assert not (project / ".orun").exists() or not list((project / ".orun").glob("wfruns/*"))


def test_a_nested_run_is_shown_with_the_way_to_it(run, project):
    top = NAP.split("steps:")[0]
    (project / "child.yaml").write_text(top + "steps:\n  - name: c\n    run: [echo, hi]\n")
    (project / "parent.yaml").write_text(top + "steps:\n  - name: s\n    workflow: ./child.yaml\n")
    ended = run("flowstone", "run", "parent.yaml")
    assert ended.returncode == 0, ended.stderr
    assert re.search(r"^s/c: succeeded", ended.stdout, re.MULTILINE)
    (child,) = json.loads(run("flowstone", "status", "--last", "--json").stdout)["children"]
    assert (child["step"], child["status"]) == ("s", "succeeded")
    refused = run("flowstone", "resume", child["run"])
    assert "is nested in run" in refused.stderr
