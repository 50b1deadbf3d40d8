"""What agent units have in common: correction, time, failures, bindings, folders, redaction."""

from __future__ import annotations

import json
import subprocess
import time

from flowstone.plan.units import EnvRef
from flowstone.redaction import MARK
from flowstone.run.outcome import Reason
from tests.contract.harnesses.program import SCHEMA, Bench

FIRST_ELSE = "if [ -e \"{0}/call-1\" ]; then echo '{2}'; else echo '{1}'; fi\n"


def answers(bench: Bench, first: str, second: str) -> str:
    return bench.program(FIRST_ELSE.format(bench.notes, first, second))


def test_a_bad_answer_is_corrected_once(bench: Bench) -> None:
    outcome = bench.perform("opencode", answers(bench, "no json", '{"v":"x"}'), schema=SCHEMA)
    assert outcome.value == {"v": "x"}
    first, second = (call[-1] for call in bench.calls)
    assert first == "Do a."
    assert second.startswith("Do a.\n\nNo parseable JSON")
    assert [e.answer for e in outcome.exchange] == ["no json\n", '{"v":"x"}\n']


def test_a_misfit_is_named_in_the_correction(bench: Bench) -> None:
    outcome = bench.perform("opencode", answers(bench, '{"v":1}', '{"w":2}'), schema=SCHEMA)
    assert outcome.reason is Reason.VALIDATION_ERROR
    assert "previous JSON response failed validation:\n- " in bench.calls[1][-1]
    assert '{"w":2}' in (outcome.diagnostic or "")


def test_an_answer_without_json_twice(bench: Bench) -> None:
    outcome = bench.perform("opencode", answers(bench, "no", "still no"), schema=SCHEMA)
    assert (outcome.reason, len(bench.calls)) == (Reason.PARSE_ERROR, 2)


def test_tokens_of_both_exchanges_are_summed(bench: Bench) -> None:
    said = [
        json.dumps(
            {"type": "result", "result": text, "session_id": "s", "usage": {"input_tokens": 2, "output_tokens": 3}}
        )
        for text in ("no", '{"v":"x"}')
    ]
    # The shell's echo would expand the escapes of the inner JSON.
    program = bench.program(FIRST_ELSE.format(bench.notes, *said).replace("echo", "printf '%s'"))
    outcome = bench.perform("claude", program, schema=SCHEMA)
    assert (outcome.value, outcome.tokens, outcome.session) == ({"v": "x"}, 10, "s")


def test_a_malformed_verdict_is_asked_for_again_and_then_fails(bench: Bench) -> None:
    outcome = bench.perform("opencode", answers(bench, "fine", '{"complete":"yes"}'), judges=True)
    assert (outcome.reason, len(bench.calls)) == (Reason.PARSE_ERROR, 2)
    assert "malformed verdict" in (outcome.error or "")


def test_a_program_that_fails(bench: Bench) -> None:
    outcome = bench.perform("claude", bench.program("echo half; echo oh no >&2; exit 7\n"))
    assert (outcome.reason, outcome.exit_code) == (Reason.NON_ZERO_EXIT, 7)
    assert outcome.error == f'engine "ag": the agent "{bench.folder}/agent" exited 7. stderr:\noh no'
    assert "--- unit output ---\nhalf" in (outcome.diagnostic or "")


def test_a_program_that_is_not_there(bench: Bench) -> None:
    bench.env["PATH"] = str(bench.folder)
    outcome = bench.perform("amazonq", None)
    assert (outcome.reason, outcome.ran) == (Reason.SPAWN_FAILED, False)
    assert outcome.error == 'engine "ag": the agent was not started: "q" was not found'


def test_a_program_over_its_time_is_ended_with_its_children(bench: Bench) -> None:
    begun = time.monotonic()
    program = bench.program(f'(sleep 1; touch "{bench.notes}/late") & sleep 30\n')
    outcome = bench.perform("claude", program, timeout_ms=300)
    assert (outcome.reason, outcome.error) == (Reason.TIMEOUT, 'engine "ag": timed out after 300ms')
    time.sleep(max(0, begun + 1.3 - time.monotonic()))
    assert not (bench.notes / "late").exists()
    assert time.monotonic() - begun < 10


def test_the_time_bounds_the_correction_too(bench: Bench) -> None:
    begun = time.monotonic()
    script = f'if [ -e "{bench.notes}/call-1" ]; then sleep 30; else sleep 0.5; echo no; fi\n'
    outcome = bench.perform("opencode", bench.program(script), schema=SCHEMA, timeout_ms=1000)
    assert (outcome.reason, outcome.error) == (Reason.TIMEOUT, 'engine "ag": timed out after 1s')
    assert len(outcome.exchange) == 2
    assert time.monotonic() - begun < 8


def test_bindings_reach_the_program_and_are_redacted(bench: Bench) -> None:
    bench.assets["env/z"] = {"APP_KEY": "bound-value-1"}
    outcome = bench.perform(
        "opencode",
        bench.program('echo "$APP_KEY and run-secret"\n'),
        env=(EnvRef("env/z", ("APP_KEY",)),),
        messages=(("user", "Do bound-value-1."),),
    )
    assert bench.environment["APP_KEY"] == "bound-value-1"
    assert outcome.value == f"{MARK} and {MARK}\n"
    assert (outcome.exchange[0].request, outcome.exchange[0].answer) == (f"Do {MARK}.", f"{MARK} and {MARK}\n")
    assert bench.lines == [f"{MARK} and {MARK}"]


def test_an_asset_with_other_keys_starts_nothing(bench: Bench) -> None:
    bench.assets["env/z"] = {"APP_KEY": "bound-value-1", "NEW": "x"}
    outcome = bench.perform("opencode", bench.program("echo hi\n"), env=(EnvRef("env/z", ("APP_KEY",)),))
    assert (outcome.reason, outcome.ran, bench.calls) == (Reason.DISPATCH_ERROR, False, [])
    assert "NEW is new" in (outcome.error or "")


def test_a_secret_that_would_break_the_form_of_the_output_is_redacted_in_the_answer_only(bench: Bench) -> None:
    bench.env["ANTHROPIC_API_KEY"] = "1234567"
    said = json.dumps({"type": "result", "result": "key 1234567", "usage": {"input_tokens": 1234567}})
    outcome = bench.perform("claude", bench.program(f"echo '{said}'\n"))
    assert (outcome.value, outcome.tokens) == (f"key {MARK}", 1234567)


def test_the_workspace_of_the_engine(bench: Bench) -> None:
    (bench.folder / "elsewhere").mkdir()
    program = bench.program("echo hi\n")
    bench.perform("claude", program, workspace="~/elsewhere")
    assert bench.note("cwd").strip() == str(bench.folder / "elsewhere")


def test_a_platform_without_a_harness(bench: Bench) -> None:
    outcome = bench.perform("nobody", None)
    assert (outcome.reason, outcome.ran) == (Reason.DISPATCH_ERROR, False)
    assert "the platform nobody cannot be dispatched" in (outcome.error or "")


def test_isolated_agent_works_in_one_worktree_for_its_whole_conversation(bench: Bench):
    """The correction finds what the first call left, and the engine's workspace does not count."""
    bench.env = {**bench.env, "TMPDIR": str(bench.folder / "tmp"), "GIT_CONFIG_NOSYSTEM": "1"}
    (bench.folder / "tmp").mkdir()
    for words in (("init", "-q", "."), ("commit", "-q", "--allow-empty", "-m", "c")):
        identity = ("-c", "user.name=n", "-c", "user.email=e@example.invalid")
        subprocess.run(["git", "-C", str(bench.work), *identity, *words], check=True, capture_output=True)
    program = bench.program(
        'if [ -e seen ]; then rm seen; pwd | sed \'s/.*/{"at":"&"}/\'; else touch seen; echo none; fi\n'
    )
    schema = {"type": "object", "required": ["at"]}
    outcome = bench.perform("opencode", program, schema=schema, isolation="worktree", workspace=str(bench.folder))
    assert outcome.value == {"at": str(bench.folder / "tmp/akm-worktrees/r/a-solo")}, outcome
    assert outcome.warnings == ()
    assert not (bench.folder / "tmp/akm-worktrees/r").exists()


def test_isolated_agent_without_a_repository_is_not_started(bench: Bench):
    outcome = bench.perform("opencode", bench.program("echo hi\n"), isolation="worktree")
    assert outcome.reason is Reason.WORKTREE_FAILED
    assert "is not a git repository" in outcome.error
    assert not list(bench.notes.glob("call-*"))
