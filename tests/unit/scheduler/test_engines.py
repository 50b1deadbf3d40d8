"""Units of one engine share its width, and wait after a rate limit (akm facts 3.9, decision 9)."""

from __future__ import annotations

from itertools import pairwise

import pytest

from flowstone.plan.model import Backoff, Retry, Unit
from flowstone.plan.units import LlmSpec
from flowstone.run.outcome import Reason
from flowstone.testing.plans import dag, fan_out, solo, spine
from flowstone.testing.scripted_dispatcher import Script
from tests.driving import Bench, bad, ok


def model(engine="e", width=2, **fields):
    return Unit(LlmSpec("Do.", engine, "http://127.0.0.1/chat/completions", "m", concurrency=width), **fields)


def items(count):
    return {"l": [f"i{number}" for number in range(count)]}


def slow(step, script=None):
    return (script or Script()).on(step, ok("x"), delay_ms=1_000)


@pytest.mark.parametrize(("map_width", "engine_width", "most"), [(8, 2, 2), (3, 16, 3), (8, 1, 1)])
def test_the_smaller_width_counts(map_width, engine_width, most):
    bench = Bench(spine(fan_out("m", "params.l", width=map_width, unit=model(width=engine_width))), slow("m"), items(9))
    assert bench.drive().state.status == "succeeded"
    assert bench.dispatcher.most_running["m"] == most


def test_steps_share_the_width_of_their_engine_and_only_that():
    steps = [solo(name, unit=model(width=2)) for name in "abcd"] + [solo("z", unit=model("other", 1))]
    script = Script()
    for name in "abcdz":
        slow(name, script)
    bench = Bench(dag(*steps, width=10), script)
    assert bench.drive().state.status == "succeeded"
    assert bench.dispatcher.most_running[""] == 3
    assert bench.dispatcher.steps()[:3] == ["a", "b", "z"]
    assert not any(bench.reports[-1].state.engines.values())


def test_the_tokens_of_a_lost_drive_are_given_back():
    bench = Bench(spine(fan_out("m", "params.l", width=8, unit=model())), slow("m"), items(4))
    state = bench.drive(timeout_ms=500).state
    assert state.status == "active"
    assert bench.drive().state.status == "succeeded"
    assert bench.reports[-1].state.engines == {"e": 0}


RATE = bad(Reason.LLM_RATE_LIMIT, "429")
BACKOFF = Retry(3, ("llm_rate_limit", "timeout"), backoff=Backoff(("llm_rate_limit",)))


def waits(*outcomes, jitter=0.0, repeat=BACKOFF):
    """Milliseconds between the attempts of a solo unit."""
    bench = Bench(spine(solo("a", unit=model(), repeat=repeat)), Script().series("a", outcomes))
    bench.clock.jitter_value = jitter
    bench.drive()
    starts = [event.at for event in bench.recorded if type(event).__name__ == "AttemptStarted"]
    return [later - earlier for earlier, later in pairwise(starts)]


def test_a_rate_limit_is_waited_out_longer_each_time():
    assert waits(RATE, RATE, RATE, ok("x")) == [1_000, 2_000, 4_000]
    assert waits(RATE, RATE, ok("x"), jitter=0.5) == [1_250, 2_500]


def test_a_wait_has_an_end():
    assert waits(*[RATE] * 9, repeat=Retry(8, None, backoff=Backoff(("llm_rate_limit",))))[-1] == 60_000


def test_what_the_server_asks_for_comes_first():
    assert waits(bad(Reason.LLM_RATE_LIMIT, retry_after_ms=7_000), ok("x"), jitter=0.9) == [7_000]


def test_other_failures_are_repeated_at_once():
    assert waits(bad(Reason.TIMEOUT), RATE, ok("x")) == [0, 2_000]


def test_units_that_were_refused_together_come_back_apart():
    step = fan_out("m", "params.l", width=8, unit=model(width=8), repeat=BACKOFF)
    bench = Bench(spine(step), Script().series("m", [RATE, ok("x")]), items(5))
    bench.drive()
    later = [e.at for e in bench.recorded if type(e).__name__ == "AttemptStarted" and e.number == 1]
    assert len(set(later)) == 5


def test_a_unit_of_a_model_gets_its_messages():
    plan = spine(solo("z"), solo("a", unit=model(schema={"type": "object"}, has_schema=True)))
    bench = Bench(plan, Script().on("a", ok({})))
    bench.drive()
    command, asked = bench.dispatcher.asked
    assert command.messages == ()
    assert [role for role, _ in asked.messages] == ["user"]
    assert asked.messages[0][1].startswith("Do.\n\nRespond with ONLY a JSON value")
