"""The real agent programs, driven by `akm workflow run` against a model server on this machine."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.integration.agents.conftest import KEY, Machine
from tests.integration.agents.programs import PROGRAMS, Program
from tests.integration.agents.server import INPUT_TOKENS, OUTPUT_TOKENS, AgentModelServer, Answer, Asked, Call, scripted

pytestmark = [pytest.mark.heavy, pytest.mark.timeout(300)]
ALL = pytest.mark.parametrize("program", PROGRAMS.values(), ids=PROGRAMS)
TURN = INPUT_TOKENS + OUTPUT_TOKENS
VERDICT = json.dumps({"complete": True, "missing": [], "feedback": "fine"})

TWO = """---
type: workflow
description: A text and a value
steps:
  - id: a
  - id: b
    inputs: [steps.a.output]
    unit:
      output: { type: object, properties: { v: { type: string } }, required: [v], additionalProperties: false }
---

# Two

## a

Do "a" now,
in two lines.

## b

Do b.

### gate

It is done.
"""
PROMPT_B = """
---
Do b.

## Declared inputs
### steps.a.output
"First.\\n\\n  The key is [REDACTED]."

Respond with ONLY a JSON value matching this JSON Schema (no prose, no code fences):
{"additionalProperties":false,"properties":{"v":{"type":"string"}},"required":["v"],"type":"object"}"""
ONE = """---
type: workflow
description: One unit
steps:
  - id: a
    unit: { timeout: TIME }
---

# One

## a

Do a.
"""


def one(timeout: str = "200s") -> str:
    return ONE.replace("TIME", timeout)


def turns(server: AgentModelServer) -> list[Asked]:
    """The requests for a turn of the task itself."""
    return [asked for asked in server.asked if not asked.is_title]


def prompt_of(asked: Asked) -> str:
    """The prompt that flowstone gave: `opencode run` hands it on in quotes, as a word with a blank in it."""
    said = asked.said[-1]
    if asked.api != "chat":
        return said
    assert (said[0], said[-1]) == ('"', '"')
    return said[1:-1].replace('\\"', '"')


def unit(run: dict[str, Any], name: str) -> dict[str, Any]:
    [found] = [unit for unit in run["units"] if unit["unitId"] == name]
    return found


def session_told_to_model(asked: Asked) -> str | None:
    """The session as the program names it in a request; gemini does not."""
    match asked.api:
        case "anthropic":
            return json.loads(asked.body["metadata"]["user_id"])["session_id"]
        case "responses":
            return asked.body["client_metadata"]["session_id"]
        case "chat":
            return asked.headers["x-session-id"]
    return None


@ALL
def test_the_time_ends_the_program_and_the_commands_it_has_started(
    program: Program, machine: Callable[..., Machine], tmp_path: Path
) -> None:
    """The model has the program run a command that would go on for minutes, with a child of its own."""
    kept = tmp_path / "project" / "kept"
    name, arguments = program.shell(f"touch {kept}; tail -f {kept} & tail -f {kept}")
    with AgentModelServer(scripted(Answer("I look.", calls=(Call(name, arguments),)))) as server:
        at = machine(program, server)
        at.engines(args=program.allowing)
        for seconds in (program.patience, 4 * program.patience):
            begun = time.monotonic()
            run = at.run(one(timeout=f"{seconds}s"), code=1)
            took = time.monotonic() - begun
            assert unit(run, "a:solo")["failureReason"] == "timeout"
            assert took < seconds + 30
            if kept.exists():
                break
    assert kept.exists()
    assert processes_about(str(kept)) == []


@ALL
def test_a_run(program: Program, machine: Callable[..., Machine]) -> None:
    """Prompts, model, key, answers, tokens and sessions of a text unit, of a value and of its judge."""
    judges = program.platform != "opencode"  # it has no option for a system text
    answers = (Answer(f"First.\n\n  The key is {KEY}."), Answer('Here: {"v": "done"}'), Answer(VERDICT))
    with AgentModelServer(scripted(*answers)) as server:
        at = machine(program, server)
        native = {"agent": "reviewer"} if program.platform in ("claude", "opencode") else {}
        at.engines(judge="agent", args=program.as_json, **native)
        run = at.run(TWO, code=0 if judges else 1)
    first, second, *judge = turns(server)
    assert prompt_of(first).endswith('\n---\nDo "a" now,\nin two lines.')
    assert prompt_of(second).endswith(PROMPT_B)
    assert KEY in first.headers[program.header]
    assert "m1" in (first.path if program.platform == "gemini" else first.body["model"])
    assert str(at.project) in json.dumps(first.body)
    if program.platform == "codex":
        assert second.body["text"]["format"]["schema"] == json.loads(PROMPT_B.splitlines()[-1])
    assert ("You are the native reviewer." in first.system) == bool(native)
    artifacts = {"a:solo": "First.\n\n  The key is [REDACTED].", "b:solo": '{"v":"done"}'}
    for name, asked in (("a:solo", first), ("b:solo", second)):
        told = unit(run, name)
        assert (told["status"], told["tokens"], told["platform"]) == ("completed", TURN, program.platform)
        assert told["exchange"][0]["request"] == prompt_of(asked)
        assert told["diagnostic"] == artifacts[name]
        assert told["sessionId"]
        assert session_told_to_model(asked) in (told["sessionId"], None)
    verdict = unit(run, "b.gate:l1")
    if judges:
        assert "strict completion auditor" in judge[0].system + judge[0].said[-1]
        assert judge[0].said[-1].endswith("Return the JSON verdict now.")
        assert (verdict["status"], verdict["tokens"], run["run"]["status"]) == ("completed", TURN, "completed")
    else:
        assert judge == []
        assert (verdict["failureReason"], run["run"]["status"]) == ("non_zero_exit", "blocked")


@ALL
def test_a_server_that_refuses_the_key(program: Program, machine: Callable[..., Machine]) -> None:
    with AgentModelServer(scripted(Answer("that key is no good", status=401))) as server:
        at = machine(program, server)
        run = at.run(one(), code=1)
    told = unit(run, "a:solo")
    assert (told["status"], told["failureReason"]) == ("failed", "non_zero_exit")
    # The stack trace in front of it fills the tail of gemini's stderr.
    said = "status: 401" if program.platform == "gemini" else "that key is no good"
    assert said in told["diagnostic"]
    assert KEY not in json.dumps(run)


@pytest.mark.parametrize("platform", ["claude", "codex"])
def test_a_server_that_fails(platform: str, machine: Callable[..., Machine]) -> None:
    program = PROGRAMS[platform]
    with AgentModelServer(scripted(Answer("boom", status=500))) as server:
        run = machine(program, server).run(one(), code=1)
    assert unit(run, "a:solo")["failureReason"] == "non_zero_exit"


@pytest.mark.parametrize("platform", ["claude", "codex"])
def test_nothing_is_left_of_a_killed_run_and_it_is_resumed(
    platform: str, machine: Callable[..., Machine], tmp_path: Path
) -> None:
    program = PROGRAMS[platform]
    kept = tmp_path / "project" / "kept"
    name, arguments = program.shell(f"touch {kept}; tail -f {kept} & tail -f {kept}")
    with AgentModelServer(scripted(Answer(calls=(Call(name, arguments),)), Answer("done"))) as server:
        at = machine(program, server)
        at.engines(args=program.allowing)
        driver = at.begin(one())
        until(kept.exists)
        driver.kill()
        driver.wait()
        until(lambda: processes_about(str(kept)) == [])
        [run] = json.loads(at.akm("workflow", "list").stdout)["runs"]
        resumed = at.akm("workflow", "run", run["id"])
    assert resumed.returncode == 0, resumed.stdout + resumed.stderr
    status = json.loads(at.akm("workflow", "status", run["id"], "--units").stdout)
    assert (status["run"]["status"], unit(status, "a:solo")["diagnostic"].strip()) == ("completed", "done")


def until(holds: Callable[[], bool], seconds: float = 40) -> None:
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.05)


def processes_about(words: str) -> list[str]:
    """The command lines that hold the words, of processes that are alive."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            command = (process / "cmdline").read_bytes().replace(b"\0", b" ").decode("utf-8", "replace")
        except OSError:
            continue
        found += [command] if words in command else []
    return found


def test_codex_works_in_git_repositories_only(machine: Callable[..., Machine]) -> None:
    with AgentModelServer(scripted(Answer("fine"))) as server:
        at = machine(PROGRAMS["codex"], server)
        (at.project / ".git").rename(at.folder / "elsewhere")
        run = at.run(one(), code=1)
    told = unit(run, "a:solo")
    assert told["failureReason"] == "non_zero_exit"
    assert "Not inside a trusted directory" in told["diagnostic"]
