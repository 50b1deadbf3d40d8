"""Workflows whose units are done by agent programs, and judged by a model or by an agent."""

import json
import os
import sys
from pathlib import Path

import pytest

SERVE = Path(__file__).parents[2] / "contract/harnesses/serve.py"
SMALL = """---
type: workflow
description: One step
steps:
  - id: a
---

# Small

## a

Do a.

### gate

It is done.
"""
PROGRAM = """#!/bin/sh
printf '%s ' "$@" | tr '\\n' ' ' >> "{log}"; echo >> "{log}"
case "$*" in
  *"Return the JSON verdict"*) text='{{\\"complete\\": true, \\"missing\\": [], \\"feedback\\": \\"\\"}}' ;;
  *) text=done ;;
esac
printf '{{"type":"result","result":"%s","session_id":"s-1","usage":{{"input_tokens":10,"output_tokens":5}}}}\\n' "$text"
"""


@pytest.fixture
def bundle(tmp_path):
    """Writes a workflow, an agent program and the configuration of both engines."""

    def write(text, endpoint="http://127.0.0.1:9/v1/chat/completions", judge="judge", platform="claude"):
        (tmp_path / "bundle/workflows").mkdir(parents=True)
        (tmp_path / "bundle/workflows/w.md").write_text(text)
        program = tmp_path / "agent"
        program.write_text(PROGRAM.format(log=tmp_path / "log"))
        program.chmod(0o755)
        engines = {
            "reviewer": {"kind": "agent", "platform": platform, "bin": str(program)},
            "judge": {"kind": "llm", "endpoint": endpoint, "model": "j1"},
        }
        config = {"engines": engines, "defaults": {"engine": "reviewer"}, "workflow": {"judgeEngine": judge}}
        (tmp_path / "config").mkdir()
        (tmp_path / "config/config.json").write_text(json.dumps({"configVersion": "0.9.0", **config}))
        aliases = {"balanced": {"reviewer": "sonnet-x"}, "deep": {"reviewer": "opus-x"}}
        (tmp_path / "config/models.json").write_text(json.dumps({"version": 1, "aliases": aliases}))

    return write


def test_an_agent_as_judge(run, bundle, tmp_path):
    bundle(SMALL, judge="reviewer")
    done = run("akm", "workflow", "run", "workflows/w")
    assert done.returncode == 0, done.stdout + done.stderr
    asked = (tmp_path / "log").read_text().splitlines()
    assert len(asked) == 2
    assert asked[1].startswith("--system-prompt ")
    assert "It is done." in asked[1]


def test_a_platform_that_is_unknown_is_refused_before_anything_is_started(run, bundle):
    bundle(SMALL, platform="nobody")
    done = run("akm", "workflow", "run", "workflows/w")
    assert done.returncode == 78
    assert "engines.reviewer.platform must be one of opencode, claude, opencode-sdk" in done.stdout + done.stderr


def test_an_installed_opencode_is_the_engine_where_none_is_selected(run, tmp_path):
    """The whole way of the synthesized engine: announced, frozen, served, its session and tokens on record."""
    (tmp_path / "bundle/workflows").mkdir(parents=True)
    (tmp_path / "bundle/workflows/w.md").write_text(SMALL[: SMALL.index("### gate")])
    (tmp_path / "bin").mkdir()
    (tmp_path / "notes").mkdir()
    program = tmp_path / "bin/opencode"
    program.write_text(f'#!/bin/sh\nexec {sys.executable} {SERVE} {tmp_path / "notes"} "$@"\n')
    program.chmod(0o755)
    path = f"{program.parent}:{os.environ['PATH']}"
    done = run("akm", "workflow", "run", "workflows/w", PATH=path)
    assert done.returncode == 0, done.stdout + done.stderr
    answer = json.loads(done.stdout)
    assert "opencode-sdk is used, since the program opencode is installed" in answer["warnings"][0]
    program.unlink()
    status = json.loads(run("akm", "workflow", "status", answer["run"]["id"], "--units").stdout)
    (unit,) = status["units"]
    assert (unit["engine"], unit["runtimeKind"], unit["platform"]) == ("opencode-sdk", "sdk", "opencode-sdk")
    assert (unit["sessionId"], unit["tokens"]) == ("ses_1", 14)
    assert status["workflow"]["steps"][0]["evidence"]["output"] == "hello"
