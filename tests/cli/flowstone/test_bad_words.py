"""Words that nobody can keep or that mean to harm: a clear error, and no escape sequence on the terminal."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from flowstone.testing.model_server import Answer, ModelServer
from tests.cli.flowstone.test_deciding import configure

STEP = """\
---
type: workflow
description: One
params: { who: { type: string, default: you } }
steps:
  - id: a
    unit: { exec: { command: [sleep, "0.5"] } }
---

# One

## a

Wait.
"""
BYTES = b"\xff"


@pytest.mark.parametrize(
    ("program", "words"),
    [
        ("flowstone", ["run", "one.md", "--set", b"who=" + BYTES]),
        ("akm", ["workflow", "run", "./one.md", "--who", BYTES]),
        ("akm", ["config", "set", "engines.x.bin", BYTES]),
    ],
)
def test_bytes_that_are_no_text_are_a_usage_error(run, tmp_path, program, words):
    (tmp_path / "project" / "one.md").write_text(STEP)
    refused = run(program, *words)
    assert (refused.returncode, "UTF-8" in refused.stderr) == (2, True)


def test_an_offset_beyond_all_numbers_finds_nothing(run, tmp_path):
    assert run("akm", "log", "--since", "@offset:99999999999999999999").returncode == 0


def test_a_judge_cannot_write_to_the_terminal(run, tmp_path):
    project = tmp_path / "project"
    said = json.dumps({"complete": False, "missing": ["\x1b[31m"], "feedback": "no \x1b[31m"})
    with ModelServer((Answer(said),)) as server:
        configure(project, server, run)
        rejected = run("flowstone", "run", "gated.md")
    assert rejected.returncode == 1
    assert "\x1b" not in rejected.stdout + rejected.stderr
    assert "flowstone approve" in rejected.stderr
    shown = run("flowstone", "status", "--last").stdout
    assert "rejected by its gate: no" in shown


def test_starts_at_once_make_one_run(tmp_path, environment, run):
    (tmp_path / "project" / "one.md").write_text(STEP)
    code = "from flowstone.cli.akm.main import main; main()"
    begun = [
        subprocess.Popen(
            [sys.executable, "-c", code, "workflow", "run", "./one.md"],
            cwd=tmp_path / "project",
            env=environment,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        for _ in range(4)
    ]
    codes = sorted(process.wait(60) for process in begun)
    assert set(codes) <= {0, 75}
    found = json.loads(run("flowstone", "list", "--json").stdout)["runs"]
    assert len(found) == codes.count(0)


def test_a_notification_that_never_stops_talking_is_bounded(run, tmp_path):
    (tmp_path / "project" / "one.md").write_text(STEP)
    hook = {"command": ["sh", "-c", "yes | head -c 300000000; exit 3"]}
    assert run("akm", "config", "set", "workflow.notify", json.dumps(hook)).returncode == 0
    ended = run("flowstone", "run", "one.md")
    assert (ended.returncode, "ended with 3: " in ended.stdout) == (0, True)
    assert len(ended.stdout) < 5_000


def test_a_data_folder_that_is_a_file_is_told(run, tmp_path):
    (tmp_path / "file").write_text("")
    refused = run("akm", "workflow", "list", AKM_DATA_DIR=str(tmp_path / "file"))
    assert (refused.returncode, "is no folder" in refused.stderr) == (70, True)


def test_too_little_of_an_id_says_how_much_is_needed(run, tmp_path):
    (tmp_path / "project" / "one.md").write_text(STEP)
    run("flowstone", "run", "one.md")
    found = json.loads(run("flowstone", "status", "--json").stdout)["run"]
    assert "8 characters" in run("flowstone", "status", found[:4]).stderr


def test_a_front_matter_without_an_end_says_how_to_end_it(run, tmp_path):
    (tmp_path / "project" / "open.md").write_text("---\ntype: workflow\n")
    assert "holds only ---" in run("flowstone", "lint", "open.md").stdout


def test_the_name_of_a_file_cannot_write_to_the_terminal(run, tmp_path):
    name = "esc\x1b[31m.md"
    (tmp_path / "project" / name).write_text(STEP)
    assert "\x1b" not in run("flowstone", "lint", name).stdout


def test_a_key_that_stands_twice_in_the_configuration_is_told(run, tmp_path):
    (tmp_path / "config").mkdir()
    path = tmp_path / "config" / "config.json"
    path.write_text('{"workflow": {"maxConcurrency": 2, "maxConcurrency": 3}}')
    refused = run("akm", "config", "set", "workflow.hostConcurrency", "4")
    assert (refused.returncode, "stands twice" in refused.stderr) == (78, True)
    assert path.read_text().count("maxConcurrency") == 2
