"""Sums of tokens, their price, and the warnings before a budget is spent."""

from __future__ import annotations

import pytest

from flowstone.plan.model import Budget, Price
from flowstone.plan.units import LlmSpec
from flowstone.run.events import AttemptStarted
from flowstone.run.outcome import Outcome
from flowstone.run.usage import Alarms, Usage, Used, total, usage_of
from flowstone.testing.plans import fan_out, retry, solo, spine
from flowstone.testing.scripted_dispatcher import Script
from flowstone.views.usage import budget_object, budget_warnings, money, run_usage, usage_object, usage_text
from tests.driving import BAD, Bench, driven, ok

SPEC = LlmSpec("", "e", "http://h/v1/chat/completions", "m")
PRICES = (Price("m", 3.0, 15.0),)


def used(*outcomes):
    sums = Used()
    for outcome in outcomes:
        sums.add(outcome)
    return sums


def split(read, written):
    return Outcome(tokens=read + written, tokens_in=read, tokens_out=written)


def test_a_price_is_for_a_million_tokens_read_and_written():
    assert usage_of(used(split(1_000_000, 0), split(0, 200_000)), SPEC, PRICES) == Usage(
        1_200_000, 1_000_000, 200_000, 6.0
    )


def test_without_a_price_there_is_no_money_and_never_zero():
    assert usage_of(used(split(10, 5)), SPEC, ()).dollars is None
    assert usage_of(used(split(10, 5)), SPEC, (Price("other", 1, 1),)).dollars is None
    assert "costUsd" not in usage_object(usage_of(used(split(10, 5)), SPEC, ()))["usage"]
    assert usage_of(used(split(10, 5)), SPEC, (Price("m", 0, 0),)).dollars == 0.0


def test_tokens_that_were_told_whole_have_no_price():
    assert usage_of(used(Outcome(tokens=9)), SPEC, PRICES) == Usage(9, 0, 0)
    both = usage_of(used(Outcome(tokens=9), split(1_000_000, 0)), SPEC, PRICES)
    assert (both.tokens, both.dollars, both.partial) == (1_000_009, 3.0, True)


def test_a_sum_tells_when_the_price_of_a_part_is_unknown():
    assert total([None, None]) is None
    assert total([Usage(5, 3, 2, 0.5), None]) == Usage(5, 3, 2, 0.5)
    assert total([Usage(5, 3, 2, 0.5), Usage(1, 1, 0)]) == Usage(6, 4, 2, 0.5, partial=True)
    assert total([Usage(1, 1, 0)]) == Usage(1, 1, 0)


@pytest.mark.parametrize(
    ("dollars", "text"),
    [(0.0, "0.00"), (1234.5, "1,234.50"), (0.1, "0.10"), (0.0123, "0.012"), (0.000_004_5, "0.0000045")],
)
def test_money_shows_two_digits_of_a_small_amount(dollars, text):
    assert money(dollars) == text


def test_usage_in_words():
    assert usage_text(usage_object(Usage(1_200, 1_000, 200, 0.006)).get("usage")) == (
        "1,200 tokens (1,000 in, 200 out), $0.0060"
    )
    assert usage_text(usage_object(Usage(9, 0, 0)).get("usage")) == "9 tokens"
    assert "at least $0.50" in usage_text(usage_object(Usage(9, 1, 1, 0.5, partial=True)).get("usage"))
    assert usage_text(None) == ""


def test_what_earlier_drives_used_is_in_the_sum():
    outcomes = iter([BAD_TOKENS, ok("x", tokens=5, tokens_in=3, tokens_out=2)])
    bench = driven(spine(solo("a")), Script().on("a", lambda dispatch: next(outcomes)))
    bench.resume()
    assert run_usage(bench.state) == Usage(12, 7, 5)
    assert bench.state.tokens == 12


BAD_TOKENS = Outcome(reason=BAD.reason, error="no", tokens=7, tokens_in=4, tokens_out=3)


def test_an_alarm_rings_once_at_four_fifths():
    alarms = Alarms(Budget(max_units=10))
    for count in (1, 7, 8, 7, 8, 10):
        alarms.note("max_units", count, count)
    alarms.note("max_tokens", 10**9, 11)
    assert [(w.used, w.limit, w.at) for w in alarms.given] == [(8, 10, 8)]
    assert alarms.given[0].text == "budget: 8 of 10 units dispatched (80 % of max_units)"


def test_a_run_warns_once_over_all_its_drives():
    plan = spine(
        fan_out("m", "params.l", width=1), solo("b", repeat=retry(1)), budget=Budget(max_units=5, max_tokens=10)
    )
    script = Script().on("m", ok("v", tokens=3)).series("b", [BAD, BAD, ok()])
    bench = Bench(plan, script, {"l": [1, 2, 3]})
    first = bench.drive()
    assert first.warnings == [
        "budget: 9 of 10 tokens used (90 % of max_tokens)",
        "budget: 4 of 5 units dispatched (80 % of max_units)",
    ]
    second = bench.resume()
    assert second.warnings == []
    assert budget_warnings(bench.state) == first.warnings
    assert budget_object(bench.state)["budget"]["maxUnits"] == {"limit": 5, "used": 5}


def test_a_budget_is_seeded_from_the_journal_over_resumes():
    plan = spine(solo("a"), solo("b"), budget=Budget(max_units=3))
    bench = driven(plan, Script().on("b", BAD))
    bench.resume()
    assert len(bench.events(AttemptStarted)) == 3
    bench.resume()
    assert len(bench.events(AttemptStarted)) == 3
    assert "budget exceeded (max_units ceiling)" in (bench.state.error or "")
    assert bench.statuses() == "a=succeeded b=failed"


def test_tokens_of_earlier_drives_stop_a_resumed_run():
    plan = spine(solo("a"), solo("b"), solo("c"), budget=Budget(max_tokens=10))
    bench = driven(plan, Script().on("a", ok("v", tokens=6)).on("b", BAD_TOKENS))
    bench.resume()
    assert "budget exceeded (max_tokens ceiling)" in (bench.state.error or "")
