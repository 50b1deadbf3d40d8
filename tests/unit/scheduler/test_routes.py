"""Routes: one branch runs, the others are skipped, and skips cascade (akm reference, "Routing"; facts 16)."""

from __future__ import annotations

import pytest

from flowstone.run.events import RunStatus
from flowstone.run.outcome import Reason
from flowstone.testing.plans import ref, route, solo, spine
from flowstone.testing.scripted_dispatcher import Script
from tests.driving import BAD, driven, ok


def plan(*more, default="d"):
    return spine(solo("a"), route("r", "steps.a.output.v", {"x": "b", "1": "c"}, default), *more)


BRANCHES = (solo("b"), solo("c"), solo("d"))


@pytest.mark.parametrize(
    ("value", "selected"),
    [("x", "b"), (1, "c"), ("1", "c"), (True, "d"), ("constructor", "d"), (1.5, "d"), ("X", "d")],
)
def test_a_value_selects_by_its_text(value, selected):
    bench = driven(plan(*BRANCHES), Script().on("a", ok({"v": value})))
    assert bench.dispatcher.steps() == ["a", selected]
    assert bench.step("r").detail["route"]["selected"] == selected
    skipped = [s.id for s in bench.state.order if s.status == "skipped"]
    assert skipped == [s for s in "bcd" if s != selected]
    note = f'Skipped by route: step "r" selected "{selected}".'
    assert {bench.step(s).detail["note"] for s in skipped} == {note}


def test_true_is_the_text_true():
    steps = (solo("a"), route("r", "steps.a.output", {"true": "b"}, "c"), solo("b"), solo("c"))
    assert driven(spine(*steps), Script().on("a", ok(True))).step("b").status == "succeeded"


def test_the_summary_and_the_artifact_tell_the_choice():
    bench = driven(plan(*BRANCHES), Script().on("a", ok({"v": "x"})))
    assert bench.step("r").summary == 'Step "r" routed on steps.a.output.v: value "x" selected step "b".'
    assert bench.artifact("r") == {"route": {"input": "steps.a.output.v", "value": "x", "selected": "b"}}


def test_no_branch_and_no_default_fails():
    bench = driven(plan(solo("b"), solo("c"), default=None), Script().on("a", ok({"v": "z"})))
    assert bench.step("r").error == (
        'Step "r" route failed: value "z" matched no "when:" branch and the route declares no default.'
    )
    assert bench.step("r").reason is Reason.ROUTE_ERROR
    assert bench.statuses() == "a=succeeded r=failed b=pending c=pending"


@pytest.mark.parametrize("value", [{"k": 1}, [1]])
def test_a_value_with_parts_fails(value):
    error = driven(plan(*BRANCHES), Script().on("a", ok({"v": value}))).step("r").error
    assert error == 'Step "r" route failed: route input steps.a.output.v resolved to a non-primitive value.'


def test_a_value_that_is_not_there_fails():
    error = driven(plan(*BRANCHES), Script().on("a", ok({}))).step("r").error
    assert error.startswith('Step "r" route failed: route input steps.a.output.v failed to resolve: ')


def test_a_step_that_no_route_names_always_runs():
    bench = driven(plan(*BRANCHES, solo("e")), Script().on("a", ok({"v": "x"})))
    assert bench.dispatcher.steps() == ["a", "b", "e"]


def test_it_fails_where_it_reads_a_skipped_branch():
    bench = driven(plan(*BRANCHES, solo("e", inputs=(ref("steps.c.output"),))), Script().on("a", ok({"v": "x"})))
    assert bench.step("e").error.endswith('steps.c.output is not available — step "c" has no recorded output.')


def test_skips_cascade_through_a_router_that_is_skipped():
    steps = (
        solo("a"),
        route("r", "steps.a.output", {"x": "s"}, "end"),
        route("s", "steps.a.output", {"x": "t"}, "u"),
        solo("t"),
        solo("u"),
        solo("end"),
    )
    bench = driven(spine(*steps), Script().on("a", ok("z")))
    assert bench.dispatcher.steps() == ["a", "end"]
    assert bench.step("t").detail["note"] == (
        'Skipped by route: step "s" was itself skipped, so none of its branch targets run.'
    )


def test_selected_by_one_router_runs_whatever_another_chose():
    steps = (
        solo("a"),
        route("r", "steps.a.output", {"x": "t"}, "u"),
        route("s", "steps.a.output", {"y": "t"}, "u"),
        solo("t"),
        solo("u"),
    )
    bench = driven(spine(*steps), Script().on("a", ok("x")))
    assert bench.dispatcher.steps() == ["a", "t", "u"]
    other = driven(spine(*steps), Script().on("a", ok("z")))
    assert other.step("t").detail["note"] == 'Skipped by route: step "r" selected "u".'


def test_a_resume_keeps_the_choice():
    bench = driven(plan(*BRANCHES), Script().on("a", ok({"v": "x"})).on("b", BAD))
    assert bench.state.status is RunStatus.FAILED
    bench.script.on("a", ok({"v": 1})).on("b", ok())
    bench.resume()
    assert bench.dispatcher.steps() == ["b"]
    assert bench.statuses() == "a=succeeded r=succeeded b=succeeded c=skipped d=skipped"
