"""Commands in odd surroundings: no stdout, no folder, names that are no text, drivers side by side."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time

import pytest

MAIN = [sys.executable, "-c", "from flowstone.cli.flowstone.main import main; main()"]
HELLO = "---\ntype: workflow\nsteps:\n  - id: a\n    unit: { exec: { command: [echo, hi] } }\n---\n\n## a\n\nSay hi.\n"
SLOW = (
    "---\ntype: workflow\nparams: { l: { type: array, default: [1, 2, 3, 4, 5, 6] } }\nsteps:\n  - id: m\n"
    "    map: { over: params.l, concurrency: 1, unit: { exec: { command: [sleep, '0.4'] } } }\n---\n\n## m\n\nWait.\n"
)


@pytest.fixture
def home(tmp_path, monkeypatch):
    folder = tmp_path / "project"
    folder.mkdir()
    for name in ("DATA", "CONFIG", "STATE", "CACHE"):
        monkeypatch.setenv(f"AKM_{name}_DIR", str(tmp_path / name.lower()))
    monkeypatch.setenv("HOME", str(tmp_path))
    (folder / "hello.md").write_text(HELLO)
    (folder / "slow.md").write_text(SLOW)
    return folder


def run(home, *words, **options):
    return subprocess.run([*MAIN, *words], cwd=home, capture_output=True, text=True, timeout=60, check=False, **options)


@pytest.mark.parametrize("words", ["run hello.md", "lint hello.md", "list", "--help"])
def test_a_closed_stdout_is_no_error(home, words):
    command = " ".join(f"'{word}'" for word in MAIN) + f" {words} >&-"
    ended = subprocess.run(["sh", "-c", command], cwd=home, capture_output=True, text=True, timeout=60, check=False)
    assert (ended.returncode, "Traceback" in ended.stderr, "Unexpected" in ended.stderr) == (0, False, False)


def test_a_folder_that_is_gone_is_told(home):
    (home / "gone").mkdir()
    command = "cd gone && rmdir ../gone && " + " ".join(f"'{word}'" for word in MAIN) + " status --last"
    ended = subprocess.run(["sh", "-c", command], cwd=home, capture_output=True, text=True, timeout=60, check=False)
    assert ended.returncode == 2
    assert "does not exist any more" in ended.stderr


def test_a_name_that_is_no_text_is_refused(home):
    name = os.fsdecode(b"\xfe.md")
    (home / name).write_text(HELLO)
    for verb in ("run", "lint"):
        ended = run(home, verb, name)
        assert ended.returncode in (1, 2)
        assert "not UTF-8" in ended.stdout + ended.stderr


def test_a_killed_run_is_shown_as_it_stands_and_watching_it_ends(home):
    driver = subprocess.Popen([*MAIN, "run", "slow.md"], cwd=home, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    counted = {}
    for _ in range(100):
        time.sleep(0.1)
        shown = run(home, "status", "--last", "--json")
        counted = json.loads(shown.stdout)["steps"][0]["units"] if shown.returncode == 0 else {}
        if counted.get("succeeded", 0) >= 1:
            break
    driver.kill()
    driver.wait()
    assert counted["total"] == 6
    assert 1 <= counted["succeeded"] < 6
    watched = run(home, "status", "--last", "--watch")
    assert "not driven now" in watched.stdout
    assert run(home, "resume", "--last").returncode == 0


def test_drivers_side_by_side_each_keep_the_run_that_they_started(home):
    started = [
        subprocess.Popen([*MAIN, *words], cwd=home, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        for words in [["run", "hello.md"]] * 3 + [["akm", "workflow", "run", "./hello.md"]] * 2
    ]
    ended = [(process.communicate()[1], process.returncode) for process in started]
    assert [code for _, code in ended[:3]] == [0, 0, 0], ended
    assert all(code in (0, 75) for _, code in ended[3:]), ended
