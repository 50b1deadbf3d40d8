"""`flowstone gc`: what goes, what stays whatever its age, and what is asked first."""

from __future__ import annotations

import os
import subprocess
import sys
import time

import pytest

GOOD = """\
apiVersion: orun.dev/v1
kind: Workflow
metadata: { name: good }
steps:
  - { name: a, run: ["true"] }
"""
LARGE = """\
---
type: workflow
description: Large
steps:
  - id: a
    unit: { exec: { command: [python3, -c, "print('x' * 2000000)"] } }
---

# Large

## a

Print.
"""


@pytest.fixture
def project(tmp_path):
    folder = tmp_path / "project"
    (folder / "good.yaml").write_text(GOOD)
    (folder / "bad.yaml").write_text(GOOD.replace('"true"', '"false"').replace("name: good", "name: bad"))
    (folder / "large.md").write_text(LARGE)
    return folder


CODE = "from flowstone.cli.flowstone.main import main; main()"


def runs(run):
    return [line.split()[3] for line in run("flowstone", "list").stdout.splitlines() if not line.startswith("no runs")]


def test_only_what_ended_goes(run, project):
    run("flowstone", "run", "good.yaml")
    run("flowstone", "run", "bad.yaml")
    listed = run("flowstone", "gc", "--older-than", "0m", "--dry-run")
    assert "1 run would go" in listed.stdout
    assert runs(run) == ["bad", "good"]
    removed = run("flowstone", "gc", "--older-than", "0m", "--yes")
    assert (removed.returncode, "removed 1 run" in removed.stdout) == (0, True)
    assert runs(run) == ["bad"]
    assert run("flowstone", "gc", "--older-than", "0m", "--yes", "--failed").returncode == 0
    assert runs(run) == []
    assert list((project / ".orun" / "wfruns").iterdir()) == []


def test_young_runs_stay(run, project):
    run("flowstone", "run", "good.yaml")
    assert run("flowstone", "gc", "--yes").stdout == "nothing to remove\n"
    assert runs(run) == ["good"]


def test_the_oldest_go_until_all_fit(run, project):
    for _ in range(3):
        run("flowstone", "run", "good.yaml")
    listed = run("flowstone", "gc", "--max-size", "1K", "--dry-run").stdout
    assert "3 runs would go" in listed
    assert "nothing to remove" in run("flowstone", "gc", "--max-size", "1G", "--dry-run").stdout


def test_nothing_goes_unasked(run, project):
    run("flowstone", "run", "good.yaml")
    refused = run("flowstone", "gc", "--older-than", "0m")
    assert (refused.returncode, "--yes" in refused.stderr) == (2, True)
    assert runs(run) == ["good"]


@pytest.mark.parametrize("words", [("--older-than", "soon"), ("--older-than", "3x"), ("--max-size", "big")])
def test_an_age_or_a_size_that_is_none_is_refused(run, project, words):
    refused = run("flowstone", "gc", *words)
    assert (refused.returncode, "write for instance" in refused.stderr) == (2, True)


def test_large_values_go_with_the_run_that_named_them(run, project, tmp_path):
    assert run("flowstone", "run", "large.md").returncode == 0
    blobs = [path for path in (tmp_path / "data").rglob("blobs/*/*") if path.is_file()]
    assert blobs
    for path in blobs:
        os.utime(path, (time.time() - 7200,) * 2)
    run("flowstone", "gc", "--older-than", "1d", "--yes")
    assert all(path.exists() for path in blobs)
    removed = run("flowstone", "gc", "--older-than", "0m", "--yes").stdout
    assert "large value" in removed
    assert not any(path.exists() for path in blobs)


def test_a_run_that_is_driven_stays(run, project, environment):
    (project / "nap.yaml").write_text(GOOD.replace('["true"]', "[sleep, '30']"))
    process = subprocess.Popen(
        [sys.executable, "-c", CODE, "run", "nap.yaml"],
        cwd=project,
        env={**os.environ, **environment},
        stdout=subprocess.DEVNULL,
    )
    try:
        deadline = time.monotonic() + 20
        while not runs(run) and time.monotonic() < deadline:
            time.sleep(0.1)
        assert run("flowstone", "gc", "--older-than", "0m", "--failed", "--yes").stdout == "nothing to remove\n"
    finally:
        process.terminate()
        process.wait()
    assert runs(run) == ["good"]


def test_a_worktree_that_was_kept_goes_by_its_age(run, project, tmp_path):
    left = tmp_path / "temporary" / "akm-worktrees" / "some-old-run" / "a-solo"
    left.mkdir(parents=True)
    (left / "file").write_text("x" * 100)
    old = time.time() - 40 * 86_400
    os.utime(left, (old, old))
    found = run("flowstone", "gc", "--dry-run", TMPDIR=str(tmp_path / "temporary")).stdout
    assert f"worktree      {left}" in found
    assert run("flowstone", "gc", "--yes", TMPDIR=str(tmp_path / "temporary")).returncode == 0
    assert not left.parent.exists()
