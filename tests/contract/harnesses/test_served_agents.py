"""Agents that are talked to by a server: sessions, sharing, failures, time, folders, redaction."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from flowstone.dispatchers.agent.dispatcher import AgentDispatcher
from flowstone.dispatchers.process.dispatcher import ProcessDispatcher
from flowstone.plan.units import AgentSpec, Credential, EnvRef, LlmSpec
from flowstone.ports.dispatcher import Dispatch, Workspace
from flowstone.redaction import MARK, Redactor
from flowstone.run.outcome import Outcome, Reason
from tests.contract.harnesses.program import PASSED, SCHEMA

SERVE = Path(__file__).parent / "serve.py"
FALLBACK = LlmSpec("", "local", "http://127.0.0.1:1/v1/chat/completions", "m1")


class Served:
    """One run's drive against a scripted server; `perform` takes prompts, all at once, and may stop the first."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.notes = folder / "notes"
        self.work = folder / "work"
        self.notes.mkdir()
        self.work.mkdir()
        self.env = {"PATH": os.environ["PATH"], "HOME": str(folder), "FOREIGN": "stays-outside"}
        self.assets: dict[str, dict[str, str]] = {"env/z": {"APP_KEY": "bound-value-1"}}
        program = folder / "opencode"
        program.write_text(f'#!/bin/sh\nexec {sys.executable} {SERVE} {self.notes} "$@"\n')
        program.chmod(0o755)
        self.bin = str(program)

    def perform(self, *prompts: str, stop: bool = False, **fields: Any) -> list[Outcome]:
        dispatches = [self._dispatch(place, prompt, dict(fields)) for place, prompt in enumerate(prompts)]

        async def main() -> list[Outcome]:
            workspace = Workspace(base=str(self.work), cwd=str(self.work))
            commands = ProcessDispatcher(workspace, self.env, Redactor(["run-secret"]), self.assets.__getitem__)
            agents = AgentDispatcher(commands, self.env)
            try:
                tasks = [asyncio.ensure_future(agents.perform(dispatch)) for dispatch in dispatches]
                while stop and not self.bodies():
                    await asyncio.sleep(0.02)
                if stop:
                    tasks[0].cancel()
                return await asyncio.gather(*tasks)
            finally:
                await agents.close()
                await commands.close()

        return asyncio.run(main())

    def one(self, prompt: str, **fields: Any) -> Outcome:
        return self.perform(prompt, **fields)[0]

    def _dispatch(self, place: int, prompt: str, fields: dict[str, Any]) -> Dispatch:
        own = {name: fields.pop(name) for name in list(fields) if name in AgentSpec.__struct_fields__}
        fields.setdefault("messages", (("user", prompt),))
        fields["has_schema"] = "schema" in fields
        spec = AgentSpec(prompt, "ag", "opencode-sdk", **{"bin": self.bin, "passed": PASSED, **own})
        return Dispatch("r", "a", f"a:{place}", 0, place, "h", spec, **fields)

    def noted(self, name: str) -> list[dict[str, Any]]:
        path = self.notes / name
        return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []

    def bodies(self, path: str = "message") -> list[Any]:
        return [request["body"] for request in self.noted("requests") if request["path"].endswith(path)]


@pytest.fixture
def served(tmp_path: Path) -> Served:
    return Served(tmp_path)


def test_an_answer_with_its_session_and_tokens(served: Served) -> None:
    outcome = served.one("Do a.", model="opencode/big", agent="plan")
    assert (outcome.value, outcome.session) == ("hello", "ses_1")
    assert (outcome.tokens, outcome.tokens_in, outcome.tokens_out) == (14, 10, 4)
    opened, said = served.noted("requests")
    assert opened["body"] == {
        "title": "a:0",
        "permission": [{"permission": "question", "pattern": "*", "action": "deny"}],
    }
    assert said["body"] == {
        "model": {"providerID": "opencode", "modelID": "big"},
        "agent": "plan",
        "parts": [{"type": "text", "text": "Do a."}],
    }
    assert (outcome.exchange[0].request, outcome.exchange[0].answer) == ("Do a.", "hello")


def test_the_server_is_started_on_this_machine_with_a_password_and_little_else(served: Served) -> None:
    served.env |= {"OPENCODE_API_KEY": "host-key-1", "HTTP_PROXY": "http://127.0.0.1:9"}
    served.one("Do a.", args=("--log-level", "ERROR"))
    (started,) = served.noted("started")
    assert started["argv"] == ["--log-level", "ERROR", "serve", "--hostname", "127.0.0.1", "--port", "0"]
    assert started["cwd"] == str(served.work)
    names = set(started["env"]) - {"PWD", "SHLVL", "_", "LC_CTYPE", "OLDPWD"}
    assert names == {"PATH", "HOME", "OPENCODE_API_KEY", "OPENCODE_SERVER_PASSWORD", "OPENCODE_CONFIG_CONTENT"}
    assert len(started["env"]["OPENCODE_SERVER_PASSWORD"]) == 32
    assert json.loads(started["env"]["OPENCODE_CONFIG_CONTENT"]) == {"autoupdate": False, "share": "disabled"}
    with pytest.raises(ProcessLookupError):
        os.kill(started["pid"], 0)


def test_units_share_a_server_and_have_sessions_of_their_own(served: Served) -> None:
    outcomes = served.perform("one", "two", "three")
    assert len(served.noted("started")) == 1
    assert {outcome.session for outcome in outcomes} == {"ses_1", "ses_2", "ses_3"}


def test_a_correction_goes_on_in_the_same_session(served: Served) -> None:
    outcome = served.one("give json", schema=SCHEMA)
    assert (outcome.value, outcome.tokens) == ({"v": "x"}, 28)
    assert len(served.bodies("/session")) == 1
    assert "No parseable JSON" in served.bodies()[1]["parts"][0]["text"]


def test_a_judge_has_a_system_text(served: Served) -> None:
    served.one("x", messages=(("system", "Be strict."), ("user", "Judge.")))
    assert served.bodies()[0]["system"] == "Be strict."
    assert served.bodies()[0]["parts"] == [{"type": "text", "text": "Judge."}]


def test_the_model_engine_behind_it_is_a_provider_of_the_server(served: Served) -> None:
    from msgspec.structs import replace

    served.env["LOCAL_KEY"] = "engine-key-1"
    tuned = replace(
        FALLBACK,
        credential=Credential(("LOCAL_KEY",)),
        temperature=0.5,
        max_tokens=99,
        reasoning_effort="low",
        enable_thinking=False,
        context_length=8000,
        extra_params={"top_p": 0.1},
    )
    served.one("Do a.", model="m1", fallback=tuned)
    env = served.noted("started")[0]["env"]
    assert env["FLOWSTONE_ENGINE_KEY"] == "engine-key-1"
    assert json.loads(env["OPENCODE_CONFIG_CONTENT"]) == {
        "autoupdate": False,
        "share": "disabled",
        "small_model": "flowstone/m1",
        "provider": {
            "flowstone": {
                "npm": "@ai-sdk/openai-compatible",
                "name": "local",
                "options": {"baseURL": "http://127.0.0.1:1/v1", "apiKey": "{env:FLOWSTONE_ENGINE_KEY}"},
                "models": {
                    "m1": {
                        "options": {
                            "temperature": 0.5,
                            "max_tokens": 99,
                            "reasoningEffort": "low",
                            "enable_thinking": False,
                            "chat_template_kwargs": {"enable_thinking": False},
                            "top_p": 0.1,
                        },
                        "limit": {"context": 8000, "output": 99},
                    }
                },
            }
        },
    }
    assert served.bodies()[0]["model"] == {"providerID": "flowstone", "modelID": "m1"}


@pytest.mark.parametrize(
    ("model", "asked"),
    [
        ("vendor/m1", {"providerID": "flowstone", "modelID": "vendor/m1"}),
        ("other", {"providerID": "flowstone", "modelID": "other"}),
        ("opencode/big", {"providerID": "opencode", "modelID": "big"}),
    ],
)
def test_which_provider_a_model_belongs_to(served: Served, model: str, asked: dict[str, str]) -> None:
    from msgspec.structs import replace

    served.one("Do a.", model=model, fallback=replace(FALLBACK, model="vendor/m1"))
    assert served.bodies()[0]["model"] == asked


def test_a_model_that_names_no_provider_starts_nothing(served: Served) -> None:
    outcome = served.one("Do a.", model="big")
    assert (outcome.reason, outcome.ran) == (Reason.DISPATCH_ERROR, False)
    assert "write provider/model" in (outcome.error or "")
    assert served.noted("started") == []


def test_a_key_that_is_missing_starts_nothing(served: Served) -> None:
    from msgspec.structs import replace

    fallback = replace(FALLBACK, credential=Credential(("MY_KEY",), required=True))
    outcome = served.one("Do a.", model="m1", fallback=fallback)
    assert outcome.reason is Reason.DISPATCH_ERROR
    assert "Required engine credential MY_KEY is not set." in (outcome.error or "")
    assert served.noted("started") == []


@pytest.mark.parametrize(
    ("prompt", "reason", "said"),
    [
        ("bad key", Reason.DISPATCH_ERROR, "the agent failed: bad key"),
        ("filtered", Reason.LLM_CONTENT_FILTER, "not that"),
        ("silence", Reason.PARSE_ERROR, "ended its turn without an answer"),
        ("no such model", Reason.DISPATCH_ERROR, "it answered 500: Unexpected server error."),
        ("crash", Reason.SPAWN_FAILED, "its server cannot be used: it broke off or cannot be reached"),
        ("retry", Reason.LLM_RATE_LIMIT, "its model failed 4 times: 429 too many requests"),
        ("permission", Reason.REPORTED_FAILURE, "it asked for a permission (bash), and nobody can give one"),
    ],
)
def test_failures(served: Served, prompt: str, reason: Reason, said: str) -> None:
    outcome = served.one(prompt)
    assert outcome.reason is reason
    assert said in (outcome.error or "")
    assert (outcome.error or "").startswith('engine "ag": ')


def test_a_server_that_does_not_come_up(served: Served) -> None:
    outcome = served.one("Do a.", args=("refuse",))
    assert outcome.reason is Reason.SPAWN_FAILED
    assert "it exited 1 before it listened. stderr:\nno home to live in" in (outcome.error or "")


def test_a_program_that_is_not_there(served: Served) -> None:
    served.env["PATH"] = str(served.work)
    outcome = served.one("Do a.", bin=None)
    assert outcome.reason is Reason.SPAWN_FAILED
    assert '"opencode" was not found' in (outcome.error or "")


def test_an_attempt_after_a_crash_gets_a_new_server(served: Served) -> None:
    outcomes = served.perform("crash")
    again = served.perform("Do a.")
    assert (outcomes[0].reason, again[0].value) == (Reason.SPAWN_FAILED, "hello")


def test_time_is_over(served: Served) -> None:
    begun = time.monotonic()
    outcome = served.one("wait", timeout_ms=2500)
    assert (outcome.reason, outcome.error) == (Reason.TIMEOUT, 'engine "ag": timed out after 2.5s')
    assert [request["path"] for request in served.noted("requests")][-1] == "/session/ses_1/abort"
    assert time.monotonic() - begun < 10


def test_a_stopped_attempt_ends_its_turn_and_no_other(served: Served) -> None:
    with pytest.raises(asyncio.CancelledError):
        served.perform("wait", stop=True)
    assert [request["path"] for request in served.noted("requests")][-1] == "/session/ses_1/abort"


def test_bindings_reach_the_server_and_are_redacted(served: Served) -> None:
    outcome = served.one("tell bound-value-1", env=(EnvRef("env/z", ("APP_KEY",)),))
    assert served.noted("started")[0]["env"]["APP_KEY"] == "bound-value-1"
    assert outcome.value == f"{MARK} in {served.work}"
    assert outcome.exchange[0].request == f"tell {MARK}"


def test_other_bindings_get_another_server(served: Served) -> None:
    async def main() -> None:
        workspace = Workspace(base=str(served.work), cwd=str(served.work))
        commands = ProcessDispatcher(workspace, served.env, Redactor(), served.assets.__getitem__)
        agents = AgentDispatcher(commands, served.env)
        await agents.perform(served._dispatch(0, "x", {"env": (EnvRef("env/z"),)}))
        served.assets["env/z"] = {"APP_KEY": "another-value"}
        await agents.perform(served._dispatch(1, "x", {"env": (EnvRef("env/z"),)}))
        await agents.close()
        await agents.close()
        await commands.close()

    asyncio.run(main())
    assert [started["env"]["APP_KEY"] for started in served.noted("started")] == ["bound-value-1", "another-value"]


def test_the_workspace_of_the_engine(served: Served) -> None:
    outcome = served.one("tell", workspace="~/else where")
    assert outcome.value == f" in {served.folder}/else where"


def test_an_isolated_agent_works_in_a_worktree(served: Served) -> None:
    served.env |= {"TMPDIR": str(served.folder / "tmp"), "GIT_CONFIG_NOSYSTEM": "1"}
    (served.folder / "tmp").mkdir()
    identity = ("-c", "user.name=n", "-c", "user.email=e@example.invalid")
    for words in (("init", "-q", "."), ("commit", "-q", "--allow-empty", "-m", "c")):
        subprocess.run(["git", "-C", str(served.work), *identity, *words], check=True, capture_output=True)
    outcome = served.one("write", isolation="worktree")
    assert (served.folder / "tmp/akm-worktrees/r/a-0/made").read_text() == "new"
    assert "is kept" in outcome.warnings[0]
    assert not (served.work / "made").exists()


def test_without_a_repository_no_server_is_started(served: Served) -> None:
    outcome = served.one("write", isolation="worktree")
    assert outcome.reason is Reason.WORKTREE_FAILED
    assert served.noted("started") == []
