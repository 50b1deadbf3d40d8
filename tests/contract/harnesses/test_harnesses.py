"""Every harness against a transcript of its program: how it is called, and what its output says.

Those of claude, codex, gemini and opencode are recorded by tests/integration/agents/record.py.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from flowstone.dispatchers.agent.registry import HARNESSES, harness_of
from flowstone.run.outcome import Outcome
from tests.contract.harnesses.program import SCHEMA, TRANSCRIPTS, Bench, verdict

P = "Do a."
JUDGED = "Judge.\n\nDo a."

TEXT = {
    "claude": ["-x", "--model", "M", "--print", "--", P],
    "opencode": ["-x", "run", "--model", "M", "--", P],
    "codex": ["-x", "exec", "--sandbox", "workspace-write", "--model", "M", "--json", "--", P],
    "gemini": ["-x", "--model", "M", "-p", P],
    "copilot": ["-x", "--model", "M", "--allow-all-tools", "-p", P],
    "pi": ["-x", "--model", "M", "-p", "--", P],
    "amazonq": ["-x", "chat", "--no-interactive", "--trust-all-tools", "--model", "M", "--", P],
    "aider": ["-x", "--no-auto-commits", "--model", "M", "--yes-always", "--no-pretty", f"--message={P}"],
    "openhands": ["-x", "--headless", "--json", f"--task={P}"],
}
STRUCTURED = {
    **TEXT,
    "claude": ["-x", "--model", "M", "--output-format", "json", "--print", "--", P],
    "gemini": ["-x", "--model", "M", "--output-format", "json", "-p", P],
    "copilot": ["-x", "--model", "M", "--allow-all-tools", "--output-format", "json", "-p", P],
    "pi": ["-x", "--model", "M", "--mode", "json", "-p", "--", P],
}
JUDGE = {
    "claude": ["--system-prompt", "Judge.", "--print", "--", P],
    "opencode": ["run", "--system-prompt", "Judge.", "--", P],
    "codex": ["exec", "--sandbox", "workspace-write", "--json", "--", JUDGED],
    "gemini": ["-p", JUDGED],
    "copilot": ["--allow-all-tools", "-p", JUDGED],
    "pi": ["--system-prompt", "Judge.", "-p", "--", P],
    "amazonq": ["chat", "--no-interactive", "--trust-all-tools", "--", JUDGED],
    "aider": ["--no-auto-commits", "--yes-always", "--no-pretty", f"--message={JUDGED}"],
    "openhands": ["--headless", "--json", f"--task={JUDGED}"],
}
PASSED = {
    "claude": {"ANTHROPIC_API_KEY", "CLAUDE_CONFIG"},
    "opencode": {"OPENCODE_API_KEY", "OPENCODE_CONFIG"},
    "codex": {"OPENAI_API_KEY", "CODEX_CONFIG"},
    "gemini": {"GEMINI_API_KEY", "GOOGLE_API_KEY"},
    "copilot": {"GH_TOKEN", "GITHUB_TOKEN"},
    "pi": {"PI_API_KEY", "ANTHROPIC_API_KEY", "OPENAI_API_KEY", "GEMINI_API_KEY"},
    "amazonq": {"AWS_PROFILE", "AWS_REGION"},
    "aider": {"LLM_MODEL", "LLM_API_KEY", "LLM_BASE_URL"},
    "openhands": {"LLM_MODEL", "LLM_API_KEY", "LLM_BASE_URL"},
}
UUID = "00000000-0000-4000-8000-000000000001"
SAID = {
    "claude.out": (214, UUID),
    "claude-verbose.out": (214, UUID),
    "opencode.out": (214, "ses_00000000000000000000000001"),
    "codex.out": (214, UUID),
    "codex-earlier.out": (214, None),
    "gemini.out": (214, UUID),
    "copilot.out": (42, "5a1e7c0e-7f5f-4b5e-9a0e-1c7f0d4b2a10"),
    "pi.out": (1000, "7d0c3a86-3b5e-4f3b-8f0d-2f6e9b1c4d55"),
    "amazonq.out": (None, None),
    "aider.out": (2618, None),
    "openhands.out": (None, "3f2504e0-4f89-11d3-9a0c-0305e82c3301"),
}


def without_schema_file(call: list[str]) -> list[str]:
    if "--output-schema" not in call:
        return call
    at = call.index("--output-schema")
    return call[:at] + call[at + 2 :]


@pytest.mark.parametrize("platform", HARNESSES)
def test_a_text_unit(bench: Bench, platform: str) -> None:
    outcome = bench.perform(platform, bench.prints(f"{platform}.out"), args=("-x",), model="M")
    assert bench.calls == [TEXT[platform]]
    assert (outcome.reason, bench.note("stdin")) == (None, "")
    assert bench.note("cwd").strip() == str(bench.work)
    assert json.dumps({"v": "done"}, separators=(",", ":")) in outcome.value


@pytest.mark.parametrize("transcript", SAID)
def test_a_structured_unit(bench: Bench, transcript: str) -> None:
    platform = transcript.partition(".")[0].partition("-")[0]
    outcome = bench.perform(platform, bench.prints(transcript), args=("-x",), model="M", schema=SCHEMA)
    assert [without_schema_file(call) for call in bench.calls] == [STRUCTURED[platform]]
    assert (outcome.reason, outcome.value) == (None, {"v": "done"}), outcome.error
    assert (outcome.tokens, outcome.session) == SAID[transcript]


@pytest.mark.parametrize("platform", HARNESSES)
def test_a_judge(bench: Bench, platform: str) -> None:
    """An agent judges in plain text as well as in its own form; the system text reaches it either way."""
    wrapped = {
        "codex": json.dumps({"type": "item.completed", "item": {"type": "agent_message", "text": verdict(True)}})
    }
    program = bench.program(f"cat <<'END'\n{wrapped.get(platform, verdict(True))}\nEND\n")
    messages = (("system", "Judge."), ("user", P))
    outcome = bench.perform(platform, program, judges=True, messages=messages)
    assert bench.calls == [JUDGE[platform]]
    assert outcome.value == {"complete": True, "missing": [], "feedback": "fine"}, outcome.error


@pytest.mark.parametrize("platform", HARNESSES)
def test_the_environment_is_an_allowlist(bench: Bench, platform: str) -> None:
    names = set().union(*PASSED.values())
    bench.env.update({name: f"value-of-{name}" for name in names})
    bench.perform(platform, bench.prints(f"{platform}.out"))
    assert set(bench.environment) - {"PWD", "OLDPWD", "SHLVL", "_"} == {"HOME", "PATH"} | PASSED[platform]


@pytest.mark.parametrize("platform", HARNESSES)
def test_passed_keys_are_never_shown(bench: Bench, platform: str) -> None:
    harness = harness_of(platform)
    assert harness is not None
    bench.env.update({name: f"value-of-{name}" for name in harness.passed})
    outcome = bench.perform(platform, bench.program("env; env >&2; exit 3\n"))
    shown = f"{outcome.error} {outcome.diagnostic} {outcome.exchange} {bench.lines}"
    visible = {name for name in harness.passed if f"value-of-{name}" in shown}
    assert visible == set(harness.plain)
    assert all(name.endswith(("_CONFIG", "_PROFILE", "_REGION", "_MODEL")) for name in harness.plain)


def test_openhands_takes_its_model_from_a_variable(bench: Bench) -> None:
    bench.env["LLM_MODEL"] = "the-host's"
    bench.perform("openhands", bench.prints("openhands.out"), model="M")
    assert bench.environment["LLM_MODEL"] == "M"


@pytest.mark.parametrize("platform", ["claude", "opencode"])
def test_a_native_agent(bench: Bench, platform: str) -> None:
    bench.perform(platform, bench.program("echo hi\n"), agent="reviewer", model="M")
    assert bench.calls[0][-6:-2] in (["--model", "M", "--agent", "reviewer"], ["M", "--agent", "reviewer", "--print"])


@pytest.mark.parametrize("platform", ["claude", "opencode"])
def test_plain_text_stays_as_it_is(bench: Bench, platform: str) -> None:
    outcome = bench.perform(platform, bench.program("printf '  two\\n\\nlines\\n'\n"))
    assert outcome.value == "  two\n\nlines\n"


@pytest.mark.parametrize("platform", HARNESSES)
def test_no_output_is_no_value(bench: Bench, platform: str) -> None:
    outcome = bench.perform(platform, bench.program("echo\n"))
    if platform == "codex":
        assert outcome.reason == "parse_error"
    else:
        assert (outcome.reason, outcome.absent, outcome.value) == (None, True, None)


def test_codex_gets_the_schema_as_a_file_that_is_gone_afterwards(bench: Bench) -> None:
    program = bench.program(
        f'while [ "$1" != --output-schema ]; do shift; done; cp "$2" "{bench.notes}/schema"\n'
        f"cat {TRANSCRIPTS / 'codex.out'}\n"
    )
    bench.perform("codex", program, schema=SCHEMA)
    call = bench.calls[0]
    assert json.loads(bench.note("schema")) == SCHEMA
    assert not Path(call[call.index("--output-schema") + 1]).exists()


@pytest.mark.parametrize(
    ("transcript", "session"),
    [
        ("claude-refused.out", UUID),
        ("codex-refused.out", UUID),
        ("opencode-refused.out", "ses_00000000000000000000000001"),
    ],
)
def test_a_program_that_fails_tells_what_it_said_of_it(bench: Bench, transcript: str, session: str) -> None:
    program = bench.program(f"cat {TRANSCRIPTS / transcript}; echo noise >&2; exit 1\n")
    outcome = bench.perform(transcript.partition("-")[0], program)
    assert (outcome.reason, outcome.exit_code, outcome.session) == ("non_zero_exit", 1, session)
    said = (outcome.error or "").split("\n")[0]
    assert " exited 1 and reported a failure: " in said
    assert "that key is no good" in said
    assert (outcome.error or "").endswith("stderr:\nnoise")


def test_codex_before_its_threads(bench: Bench) -> None:
    """Versions before 0.40 tell their session, and their answer with the end of the task."""
    events = (
        {"id": "", "msg": {"type": "session_configured", "session_id": "s-1", "model": "m"}},
        {"id": "0", "msg": {"type": "agent_message", "message": "I have looked."}},
        {"id": "0", "msg": {"type": "task_complete", "last_agent_message": "done"}},
    )
    lines = "\n".join(json.dumps(event) for event in events)
    outcome = bench.perform("codex", bench.program(f"cat <<'END'\n{lines}\nEND\n"))
    assert (outcome.value, outcome.session) == ("done", "s-1")


def test_gemini_is_asked_for_json_once(bench: Bench) -> None:
    """Given twice, the option is a list to the program, which then prints text."""
    args = ("--output-format", "json")
    bench.perform("gemini", bench.prints("gemini.out"), args=args, schema=SCHEMA)
    assert bench.calls == [[*args, "-p", P]]


FAILURES = {
    "claude": {"type": "result", "subtype": "error_during_execution", "is_error": True, "session_id": "s"},
    "opencode": {"type": "error", "sessionID": "s", "error": {"name": "ApiError", "data": {"message": "no credit"}}},
    "codex": {"type": "turn.failed", "error": {"message": "no credit"}},
    "gemini": {"session_id": "s", "error": {"type": "ApiError", "message": "no credit", "code": 1}},
    "copilot": {"type": "session.error", "data": {"message": "no credit"}},
    "pi": {
        "type": "message_end",
        "message": {"role": "assistant", "content": [], "stopReason": "error", "errorMessage": "no credit"},
    },
}


@pytest.mark.parametrize("platform", FAILURES)
def test_a_failure_that_the_program_reports(bench: Bench, platform: str) -> None:
    outcome: Outcome = bench.perform(platform, bench.program(f"echo '{json.dumps(FAILURES[platform])}'\n"))
    assert outcome.reason == "reported_failure"
    words = "error_during_execution" if platform == "claude" else "no credit"
    assert f"reported a failure: {words}" in (outcome.error or "")


def test_an_error_event_of_a_codex_turn_that_went_on_is_none(bench: Bench) -> None:
    outcome = bench.perform(
        "codex", bench.program(f'echo \'{{"type":"error","message":"retrying"}}\'; cat {TRANSCRIPTS}/codex.out\n')
    )
    assert (outcome.reason, outcome.value) == (None, '{"v":"done"}')
