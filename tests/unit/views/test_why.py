"""Why a unit ran, was reused, failed, was skipped, blocked or has not started."""

import pytest

from flowstone.errors import UsageError
from flowstone.expr.model import Cel
from flowstone.run.events import RunStatus, Status
from flowstone.testing.plans import dag, fan_out, ref, solo, spine
from flowstone.views.why import why, why_lines
from tests.unit.views.journals import (
    bad,
    broke,
    closed,
    driver,
    ended,
    good,
    opened,
    ran,
    reopened,
    run_closed,
    started,
    state_of,
)


def explain(plan, events, name):
    return why(state_of(plan, events), events, name)


def said(answer):
    return "\n".join(why_lines(answer))


def test_a_first_run():
    answer = explain(spine(solo("a")), [driver(), *ran("a", 0, 20)], "a")
    assert answer.verdict == "succeeded"
    assert "it had never run before" in said(answer)


def test_a_failure_tells_reason_and_diagnostic():
    answer = explain(spine(solo("a")), [driver(), *broke("a", 0, 20, diagnostic="no disk")], "a:solo")
    assert answer.verdict == "failed"
    assert "non_zero_exit" in said(answer)
    assert "no disk" in said(answer)


def test_a_retry_ran_because_the_attempt_before_failed():
    events = [driver(), opened("a", 0), started("a", 0), ended("a", 5, bad())]
    events += [started("a", 9, number=1), ended("a", 12, good(1), number=1), closed("a", 12)]
    assert "it ran because the attempt before failed (non_zero_exit)" in said(explain(spine(solo("a")), events, "a"))


def test_a_resume_names_the_input_that_changed():
    plan = spine(solo("a"), solo("b", inputs=(ref("steps.a.output"),)))
    events = [
        driver(),
        *ran("a", 0, 5, "one"),
        *broke("b", 6, 9),
        run_closed(9, RunStatus.FAILED),
        reopened(20, "a", "b"),
        driver(21),
        *ran("a", 22, 25, "two", hash="h9"),
        opened("b", 26),
        started("b", 26, hash="h2"),
        ended("b", 28, good()),
        closed("b", 28),
    ]
    text = said(explain(plan, events, "b"))
    assert "changed input: steps.a.output (step a gave another output)" in text
    assert "input hash before h1" in text
    assert "input hash h2" in text


def test_a_unit_that_was_reused():
    plan = spine(fan_out("m", "params.items"))
    events = [driver(), opened("m", 0, 2)]
    events += [started("m", 0, unit="u0"), ended("m", 5, good(1), unit="u0")]
    events += [started("m", 0, unit="u1", index=1), ended("m", 5, bad(), unit="u1", index=1)]
    events += [closed("m", 6, Status.FAILED), run_closed(6, RunStatus.FAILED), reopened(9, "m"), driver(9)]
    events += [opened("m", 10, 2), started("m", 10, unit="u1", index=1), ended("m", 12, good(2), unit="u1", index=1)]
    assert explain(plan, events, "m[0]").verdict == "reused"
    again = explain(plan, events, "u1")
    assert again.verdict == "succeeded"
    assert "the attempt before failed" in said(again)
    assert "with the same inputs as before" in said(again)


def test_a_lost_attempt():
    events = [
        driver(),
        opened("a", 0),
        started("a", 0),
        driver(50),
        opened("a", 51),
        started("a", 51),
        ended("a", 60, good()),
    ]
    assert "the attempt before was lost" in said(explain(spine(solo("a")), events, "a"))


def test_skipped_by_a_condition_and_by_a_route():
    plan = dag(solo("a", when=Cel("inputs.x")), solo("b"))
    events = [
        driver(),
        closed("a", 1, Status.SKIPPED),
        closed("b", 1, Status.SKIPPED, detail={"note": "Skipped by route."}),
    ]
    assert said(explain(plan, events, "a")) == "a: skipped\n  its condition is false: inputs.x"
    assert "Skipped by route." in said(explain(plan, events, "b"))


def test_blocked_names_the_step_that_failed_first():
    plan = dag(solo("a"), solo("b", needs=("a",)), solo("c", needs=("b",)))
    events = [
        driver(),
        *broke("a", 0, 5),
        closed("b", 5, Status.UPSTREAM_FAILED),
        closed("c", 5, Status.UPSTREAM_FAILED),
    ]
    text = said(explain(plan, events, "c"))
    assert text.startswith("c: upstream_failed")
    assert 'step "c" needs "b", which did not run either' in text
    assert 'step "b" needs "a", which failed: exited 1' in text


def test_pending_behind_a_failure_of_a_spine():
    plan = spine(solo("a"), solo("b"))
    text = said(explain(plan, [driver(), *broke("a", 0, 5), run_closed(5, RunStatus.FAILED)], "b"))
    assert 'the run admits nothing more, since step "a" failed' in text


def test_a_whole_map_asks_for_one_unit():
    plan = spine(fan_out("m", "params.items"))
    events = [driver(), opened("m", 0, 2), started("m", 0, unit="u0"), started("m", 0, unit="u1", index=1)]
    assert "ask for one of them" in said(explain(plan, events, "m"))


@pytest.mark.parametrize("name", ["nothing", "u", "m[7]"])
def test_names_that_do_not_fit(name):
    plan = spine(fan_out("m", "params.items"))
    events = [driver(), opened("m", 0, 2), started("m", 0, unit="u0"), started("m", 0, unit="u1", index=1)]
    with pytest.raises(UsageError):
        explain(plan, events, name)
