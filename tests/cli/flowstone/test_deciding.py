"""`flowstone approve` and `reject`: a person decides what a gate could not."""

from __future__ import annotations

import json

import pytest

from flowstone.testing.model_server import Answer, ModelServer

GATED = """---
type: workflow
description: Gated
steps:
  - id: a
    unit: { exec: { command: [sh, -c, 'echo x >> ran; echo work'] } }
  - id: b
    unit: { exec: { command: [sh, -c, 'echo shipped > shipped'] } }
---

# Gated

## a

Work.

### gate

The work is good.

## b

Ship.
"""
REJECTION = json.dumps({"complete": False, "missing": ["all"], "feedback": "not good"})


@pytest.fixture
def project(tmp_path, run):
    return tmp_path / "project"


def configure(project, server, run):
    engine = {"kind": "llm", "endpoint": server.endpoint, "model": "m"}
    for key, value in (("engines.judge", engine), ("workflow.judgeEngine", "judge")):
        text = json.dumps(value) if isinstance(value, dict) else value
        assert run("flowstone", "akm", "config", "set", key, text).returncode == 0
    (project / "gated.md").write_text(GATED)


def test_an_approved_step_goes_on_without_running_again(run, project):
    with ModelServer((Answer(REJECTION),)) as server:
        configure(project, server, run)
        rejected = run("flowstone", "run", "gated.md")
        assert rejected.returncode == 1
        assert "not good" in rejected.stdout + rejected.stderr
        found = json.loads(run("flowstone", "status", "--json").stdout)["run"]
        assert run("flowstone", "approve", found, "b").returncode == 2
        approved = run("flowstone", "approve", found, "a", "--note", "read it")
        assert (approved.returncode, "flowstone resume" in approved.stdout) == (0, True)
        assert run("flowstone", "resume", "--last").returncode == 0
    assert (project / "ran").read_text() == "x\n"
    assert (project / "shipped").exists()


def test_a_rejected_step_fails_and_names_who(run, project):
    with ModelServer((Answer(REJECTION),)) as server:
        configure(project, server, run)
        run("flowstone", "run", "gated.md")
        found = json.loads(run("flowstone", "status", "--json").stdout)["run"]
        assert run("flowstone", "reject", found, "a", "--note", "no").returncode == 0
        failed = run("flowstone", "resume", "--last")
    assert failed.returncode == 1
    assert "rejected by" in failed.stdout + failed.stderr
    assert not (project / "shipped").exists()
