"""A prompt that no argument of a program can hold: refused with a reason, where the program takes arguments."""

from __future__ import annotations

from flowstone.run.outcome import Reason
from tests.contract.harnesses.program import Bench
from tests.contract.harnesses.test_served_agents import Served, served

__all__ = ["served"]


def test_a_prompt_that_the_system_cannot_pass_on_is_refused(bench: Bench) -> None:
    outcome = bench.perform("claude", bench.program("echo hi\n"), messages=(("user", "ä" * 70_000),))
    assert (outcome.reason, outcome.ran, bench.calls) == (Reason.DISPATCH_ERROR, False, [])
    assert "its prompt has 140000 bytes, and the system passes at most 131071 in one argument" in (outcome.error or "")
    assert "opencode-sdk" in (outcome.error or "")
    assert len(outcome.exchange[0].request) <= 4_100


def test_the_longest_prompt_that_fits(bench: Bench) -> None:
    outcome = bench.perform("opencode", bench.program("echo hi\n"), messages=(("user", "x" * 131_071),))
    assert outcome.value == "hi\n"
    assert len(bench.calls[0][-1]) == 131_071


def test_an_agent_with_a_server_takes_any_prompt(served: Served) -> None:
    assert served.one("x" * 400_000).value == "hello"
    assert len(served.bodies()[0]["parts"][0]["text"]) == 400_000
