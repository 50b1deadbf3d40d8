"""Gates: only a complete verdict lets a step through; a rejection loops, stands, or is taken up again."""

from __future__ import annotations

import pytest

from flowstone.drivers.journal import Journal
from flowstone.drivers.transitions import record
from flowstone.plan.model import Gate, Unit
from flowstone.plan.units import LlmSpec
from flowstone.run.events import StepDecided
from flowstone.run.outcome import Reason
from flowstone.testing.crashing_store import Crash, CrashingStore, When
from flowstone.testing.plans import command, fan_out, route, solo, spine
from flowstone.testing.scripted_dispatcher import Script
from tests.driving import RUN, Bench, bad, ok

JUDGE = LlmSpec("", "judge", "http://127.0.0.1/chat/completions", "m", concurrency=1, judges=True)
PASS = {"complete": True, "missing": [], "feedback": ""}


def model(**fields):
    return Unit(LlmSpec("Do.", "e", "http://127.0.0.1/chat/completions", "m", concurrency=4), **fields)


def gated(unit=None, max_loops=1, loops=True, **fields):
    gate = Gate("RUBRIC holds.", max_loops, judge=JUDGE, system="Be strict.", loops=loops)
    return solo("a", unit=unit or model(), gate=gate, **fields)


def no(feedback, *missing):
    return {"complete": False, "missing": list(missing), "feedback": feedback}


def judged_by(*verdicts, work="draft"):
    """A script whose judge gives these verdicts in turn, the last one for ever."""
    given = iter(range(1_000))

    def answer(_dispatch):
        verdict = verdicts[min(next(given), len(verdicts) - 1)]
        return ok(verdict) if isinstance(verdict, dict) else verdict

    return Script().on("a", ok(work)).on("a", answer, unit=-1)


def asked(bench, judge):
    return [d for dispatcher in bench.dispatchers for d in dispatcher.asked if (d.index < 0) == judge]


def test_a_complete_verdict_lets_the_step_through():
    bench = Bench(spine(gated(), solo("b")), judged_by(PASS))
    report = bench.drive()
    assert report.state.status == "succeeded"
    (question,) = asked(bench, judge=True)
    assert question.unit == "a.gate:l1"
    system, user = question.messages
    assert system == ("system", "Be strict.")
    assert "1. RUBRIC holds." in user[1]
    assert '"draft"' in user[1]
    assert report.state.dispatched == 2


def test_a_rejection_is_answered_by_fresh_units_that_know_it():
    bench = Bench(spine(gated(max_loops=3)), judged_by(no("too short", "length"), PASS))
    assert bench.drive().state.status == "succeeded"
    first, second = asked(bench, judge=False)
    assert (first.unit, second.unit) == ("a:solo", "a:solo~l2")
    assert first.hash != second.hash
    assert "too short" in second.messages[0][1]
    assert "- length" in second.messages[0][1]
    assert [d.unit for d in asked(bench, judge=True)] == ["a.gate:l1", "a.gate:l2"]


def test_max_loops_counts_all_executions_and_the_rejection_stands():
    bench = Bench(spine(gated(max_loops=2), solo("b")), judged_by(no("no")))
    report = bench.drive()
    assert (report.end.halt, report.state.status) == ("rejected", "active")
    assert report.state.steps["a"].status == "pending"
    assert len(asked(bench, judge=False)) == 2
    again = bench.drive()
    assert again.end.halt == "rejected"
    assert again.state.steps["a"].rejections[-1].feedback == "no"
    assert len(asked(bench, judge=False)) == 2
    assert len(asked(bench, judge=True)) == 2


def test_a_resume_gives_a_fresh_allowance():
    bench = Bench(spine(gated(max_loops=2)), judged_by(no("1"), no("2"), no("3"), PASS))
    bench.drive()
    report = bench.drive(reopen=True)
    assert report.state.status == "succeeded"
    assert [d.unit for d in asked(bench, judge=False)] == ["a:solo", "a:solo~l2", "a:solo~l3", "a:solo~l4"]


def test_a_command_is_judged_and_never_run_again():
    bench = Bench(spine(gated(command("deploy"), max_loops=5, loops=False)), judged_by(no("no"), PASS))
    assert bench.drive().end.halt == "rejected"
    assert bench.drive(reopen=True).state.status == "succeeded"
    assert len(asked(bench, judge=False)) == 1
    assert len(asked(bench, judge=True)) == 2


@pytest.mark.parametrize("failure", [bad(Reason.LLM_INVALID_JSON, "no verdict"), bad(Reason.SPAWN_FAILED, "refused")])
def test_a_judge_without_a_verdict_holds_the_run(failure):
    bench = Bench(spine(gated(), solo("b")), judged_by(failure, PASS))
    report = bench.drive()
    assert report.state.status == "held"
    assert "gave no verdict" in report.state.steps["a"].error
    assert bench.drive(reopen=True).state.status == "succeeded"
    assert len(asked(bench, judge=False)) == 2  # a's work is reused, b runs


def test_a_failed_step_is_never_judged():
    bench = Bench(spine(gated()), Script().on("a", bad()))
    assert bench.drive().state.status == "failed"
    assert asked(bench, judge=True) == []


def test_a_schema_miss_loops_without_the_judge_and_is_journaled():
    works = iter(["text", {"x": 1}])
    script = Script().on("a", lambda _: ok(next(works))).on("a", ok(PASS), unit=-1)
    step = gated(max_loops=2, schema={"type": "object"}, has_schema=True)
    bench = Bench(spine(step), script)
    assert bench.drive().state.status == "succeeded"
    assert [e.by_schema for e in bench.recorded if type(e).__name__ == "StepRejected"] == [True]
    assert len(asked(bench, judge=True)) == 1


def test_a_route_and_an_empty_fan_out_are_judged():
    gate = Gate("R", judge=JUDGE)
    plan = spine(route("r", "params.v", {"x": "b"}, gate=gate), solo("b"), fan_out("m", "params.l", gate=gate))
    script = Script().on("r", ok(PASS), unit=-1).on("m", ok(PASS), unit=-1)
    bench = Bench(plan, script, {"v": "x", "l": []})
    assert bench.drive().state.status == "succeeded"
    assert [d.unit for d in asked(bench, judge=True)] == ["r.gate:l1", "m.gate:l1"]


def test_a_spent_step_can_be_decided_by_a_person():
    for approved, status in ((True, "succeeded"), (False, "failed")):
        bench = Bench(spine(gated()), judged_by(no("no")))
        state = bench.drive().state
        decided = StepDecided("a", bench.clock.now_ms(), approved, "someone", "seen")
        record(state, Journal(bench.store, RUN, state.seq), decided)
        assert bench.drive(reopen=True).state.status == status
        assert len(asked(bench, judge=False)) == 1
        assert len(asked(bench, judge=True)) == 1


def test_after_a_crash_at_any_append_a_judged_artifact_is_not_judged_again():
    plan = spine(gated(max_loops=3))
    verdicts = (no("one"), no("two"), PASS)
    whole = Bench(plan, judged_by(*verdicts))
    whole.drive()
    appends = len({event.at for event in whole.recorded}) + len(whole.recorded)
    for when in When:
        for nth in range(1, appends):
            bench = Bench(plan, judged_by(*verdicts))
            crashing = CrashingStore(bench.store, nth, when)
            try:
                bench.drive(store=crashing)
            except Crash:
                assert bench.drive().state.status == "succeeded"
            journaled = [e for e in bench.recorded if type(e).__name__ == "AttemptEnded" and e.index < 0]
            assert len({(e.unit) for e in journaled}) == len(journaled)
