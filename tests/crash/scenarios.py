"""The plans that crash tests kill at every append: one of each kind, small enough to try them all."""

from __future__ import annotations

from typing import Any

from flowstone.plan.model import Join, Plan
from flowstone.testing.plans import cel, computed, dag, export, fan_out, poll, ref, retry, route, solo, spine, tolerant
from flowstone.testing.scripted_dispatcher import Script
from tests.driving import BAD, bad, ok

Scenario = tuple[Plan, Script, dict[str, Any]]


def a_spine() -> Scenario:
    plan = spine(
        solo("a"),
        solo("b", inputs=(ref("steps.a.output"),)),
        solo("c"),
        outputs=(export("x", "steps.a.output.n"),),
    )
    return plan, Script().on("a", ok({"n": 1})), {}


def a_failing_spine() -> Scenario:
    return spine(solo("a"), solo("b"), solo("c")), Script().on("b", BAD), {}


def a_map_with_retry() -> Scenario:
    plan = spine(tolerant(fan_out("m", "params.l", width=2, repeat=retry(1))), solo("after"))
    script = Script().series("m", [BAD, ok("second")], unit="b").on("m", BAD, unit="c")
    return plan, script.on("m", ok("slow"), unit="a", delay_ms=30), {"l": list("abcd")}


def a_vote() -> Scenario:
    script = Script().on("m", ok(1)).on("m", ok(1), unit=0, delay_ms=20).on("m", ok(2), unit=1, delay_ms=40)
    return spine(fan_out("m", "params.l", width=3, vote=True)), script, {"l": [1, 2, 2]}


def a_route() -> Scenario:
    steps = (
        solo("a"),
        route("r", "steps.a.output", {"x": "b"}, "c"),
        solo("b"),
        route("s", "params.p", {"y": "d"}, "e"),
        solo("c"),
        solo("d"),
        solo("e"),
    )
    return spine(*steps), Script().on("a", ok("x")), {"p": "y"}


def a_dag_with_poll() -> Scenario:
    plan = dag(
        solo("a", outputs=(computed("n", "1"),)),
        solo("p", needs=("a",), repeat=poll("attempt == 2", interval_ms=10)),
        solo("t", needs=("a",), join=Join.ALL_ENDED, tolerated=True),
        solo("u", needs=("t",), join=Join.ALL_ENDED, tolerated=True, when=cel("steps.t.failed")),
        solo("v", needs=("p", "u"), repeat=retry(1, base_ms=5)),
        outputs=(computed("o", "steps.a.outputs.n"),),
        width=2,
    )
    return plan, Script().on("t", bad(exit_code=2)).series("v", [BAD, ok()]), {}


def a_dag_that_fails() -> Scenario:
    plan = dag(solo("a"), solo("b", needs=("a",)), solo("c"), solo("d", needs=("c",)))
    return plan, Script().on("a", BAD).on("c", ok(), delay_ms=20), {}


def a_large_artifact() -> Scenario:
    plan = spine(solo("a"), solo("b", inputs=(ref("steps.a.output"),)), solo("c"))
    return plan, Script().on("a", ok("ä" * 800_000)), {}


SCENARIOS = {
    scenario.__name__: scenario
    for scenario in (
        a_spine,
        a_failing_spine,
        a_map_with_retry,
        a_vote,
        a_route,
        a_dag_with_poll,
        a_dag_that_fails,
        a_large_artifact,
    )
}
