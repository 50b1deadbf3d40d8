"""A spine halts at its first failure and goes on from there (akm reference, "Failure policy"; facts 19)."""

from __future__ import annotations

import pytest

from flowstone.drivers.local import Halt
from flowstone.errors import IllegalTransition
from flowstone.run.events import AttemptEnded, RunStatus, StepClosed
from flowstone.run.outcome import Reason
from flowstone.testing.plans import budget, export, fan_out, ref, retry, route, solo, spine, tolerant
from flowstone.testing.scripted_dispatcher import Script
from tests.driving import BAD, bad, driven, ok


def test_steps_run_one_after_the_other():
    bench = driven(spine(solo("a"), solo("b"), solo("c")), Script().on("a", ok("A"), delay_ms=50))
    assert bench.dispatcher.steps() == ["a", "b", "c"]
    assert bench.dispatcher.most_running[""] == 1
    assert bench.statuses() == "a=succeeded b=succeeded c=succeeded"
    assert bench.state.status is RunStatus.SUCCEEDED
    assert bench.artifact("a") == "A"


def test_a_failure_halts_the_run_and_leaves_later_steps_pending():
    bench = driven(spine(solo("a"), solo("b"), solo("c")), Script().on("b", BAD))
    assert bench.statuses() == "a=succeeded b=failed c=pending"
    assert bench.state.status is RunStatus.FAILED
    assert bench.state.closed_at is None
    assert bench.state.current_step == "b"
    assert bench.step("b").reason is Reason.NON_ZERO_EXIT
    assert "exited 1" in bench.step("b").error


def test_a_failed_run_is_driven_again_only_when_it_is_reopened():
    bench = driven(spine(solo("a"), solo("b"), solo("c")), Script().on("b", BAD))
    with pytest.raises(IllegalTransition, match="is failed"):
        bench.drive()
    bench.script.on("b", ok("B"))
    bench.resume()
    assert bench.dispatcher.steps() == ["b", "c"]
    assert bench.state.status is RunStatus.SUCCEEDED


def test_a_completed_run_is_reported_and_nothing_is_recorded():
    bench = driven(spine(solo("a")))
    seq = bench.state.seq
    assert bench.drive().end.halt is Halt.ENDED
    assert bench.state.seq == seq
    with pytest.raises(IllegalTransition, match="already completed"):
        bench.resume()


def test_a_tolerated_failure_of_a_solo_unit_leaves_null():
    bench = driven(spine(tolerant(solo("a")), solo("b")), Script().on("a", BAD))
    assert bench.state.status is RunStatus.SUCCEEDED
    assert bench.artifact("a") is None
    assert "Failures (recorded, on_error: continue): a:solo (non_zero_exit)." in bench.step("a").summary


def test_the_summary_counts_units_and_quotes_the_first_diagnostic():
    bench = driven(spine(solo("a")), Script().on("a", bad(error="no such file")))
    assert bench.step("a").summary == (
        'Executed 1 unit(s) for step "a" via workflow orchestration: 0 succeeded, 1 failed. '
        "Failures: a:solo (non_zero_exit). First failure diagnostic (a:solo): no such file"
    )


def test_an_input_that_cannot_be_resolved_fails_the_whole_step_before_any_dispatch():
    plan = spine(solo("a"), solo("b", inputs=(ref("steps.a.output.name"),)))
    bench = driven(plan, Script().on("a", ok("text")))
    assert bench.dispatcher.steps() == ["a"]
    error = (
        'Step "b" declared input "steps.a.output.name" failed to resolve: '
        'steps.a.output is not an object — cannot resolve property "name".'
    )
    assert bench.step("b").error == error
    assert bench.step("b").detail == {"error": error}
    assert bench.step("b").summary == error


def test_a_step_schema_is_checked_against_the_artifact():
    schema = {"type": "object"}
    plan = spine(solo("a", schema=schema, has_schema=True), solo("b"))
    bench = driven(plan, Script().on("a", ok([1])))
    assert bench.step("a").reason is Reason.VALIDATION_ERROR
    assert bench.step("a").summary == (
        'Step "a" artifact failed validation against the step\'s declared output schema: '
        "$: expected type object, got array"
    )
    assert driven(plan, Script().on("a", ok({}))).state.status is RunStatus.SUCCEEDED


def test_context_variables_name_run_step_unit_params_and_inputs():
    plan = spine(solo("a"), solo("b", inputs=(ref("steps.a.output"), ref("params.n"))))
    bench = driven(plan, params={"n": 2, "a": "ä"})
    assert dict(bench.asked()[-1].context) == {
        "FLOW_RUN_ID": "run-00000001",
        "FLOW_STEP_ID": "b",
        "FLOW_UNIT_ID": "b:solo",
        "FLOW_PARAMS": '{"a":"ä","n":2}',
        "FLOW_INPUTS": '{"params.n":2,"steps.a.output":"a"}',
    }
    assert "FLOW_INPUTS" not in dict(bench.asked()[0].context)


class TestOutputs:
    """Workflow outputs: resolved at completion, rolled back when they cannot be (akm reference)."""

    def test_they_are_read_from_the_artifacts(self):
        plan = spine(solo("a"), outputs=(export("n", "steps.a.output.n", {"type": "integer"}),))
        bench = driven(plan, Script().on("a", ok({"n": 3})))
        assert bench.state.outputs == {"n": 3}
        assert bench.store.load("run-00000001").summary.outputs == {"n": 3}

    def test_nothing_is_stored_without_a_declaration(self):
        assert driven(spine(solo("a"))).state.outputs is None

    @pytest.mark.parametrize(
        ("value", "problem"),
        [({"m": 1}, "outputs.n: steps.a.output.n is missing"), ({"n": "x"}, "outputs.n: $: expected type integer")],
    )
    def test_a_bad_one_rolls_completion_back(self, value, problem):
        plan = spine(solo("a"), solo("b"), outputs=(export("n", "steps.a.output.n", {"type": "integer"}),))
        bench = driven(plan, Script().on("a", ok(value)))
        end = bench.reports[-1].end
        assert end.halt is Halt.REFUSED
        assert end.problem.startswith(problem)
        assert bench.state.status is RunStatus.ACTIVE
        assert [event.step for event in bench.events(StepClosed)] == ["a"]
        assert bench.state.current_step == "b"

    def test_every_problem_is_told(self):
        plan = spine(solo("a"), outputs=(export("m", "steps.a.output.m"), export("n", "steps.a.output.n")))
        problem = driven(plan, Script().on("a", ok({}))).reports[-1].end.problem
        assert [line.split(":")[0] for line in problem.splitlines()] == ["outputs.m", "outputs.n"]

    def test_the_next_drive_reuses_the_unit_and_is_refused_again(self):
        plan = spine(solo("a"), outputs=(export("n", "steps.a.output.n"),))
        bench = driven(plan, Script().on("a", ok({})))
        assert bench.drive().end.halt is Halt.REFUSED
        assert bench.dispatcher.asked == []

    def test_a_last_step_that_is_skipped_is_rolled_back_too(self):
        plan = spine(
            solo("a"),
            route("r", "steps.a.output", {"a": "b"}, "c"),
            solo("b"),
            solo("c"),
            outputs=(export("n", "steps.c.output"),),
        )
        bench = driven(plan)
        assert bench.reports[-1].end.problem.startswith("outputs.n: steps.c.output is not available")
        assert bench.statuses() == "a=succeeded r=succeeded b=succeeded c=pending"

    def test_a_failed_run_resolves_none(self):
        plan = spine(solo("a"), solo("b"), outputs=(export("n", "steps.a.output"),))
        bench = driven(plan, Script().on("b", BAD))
        assert bench.state.status is RunStatus.FAILED
        assert bench.state.outputs is None

    def test_an_artifact_too_large_to_show_rolls_completion_back_also_in_a_live_run(self):
        plan = spine(solo("a"), outputs=(export("n", "steps.a.output"),))
        bench = driven(plan, Script().on("a", ok("x" * 1_048_577)))
        assert "too large" in bench.reports[-1].end.problem
        assert "too large" in bench.drive().end.problem


class TestBounds:
    def test_max_steps_leaves_the_run_active(self):
        bench = driven(spine(solo("a"), solo("b"), solo("c")), max_steps=2)
        assert bench.reports[-1].end.halt is Halt.STEPS_SPENT
        assert bench.state.status is RunStatus.ACTIVE
        assert bench.statuses() == "a=succeeded b=succeeded c=pending"
        bench.drive(max_steps=1)
        assert bench.state.status is RunStatus.SUCCEEDED

    def test_a_failure_within_max_steps_fails_the_run(self):
        assert driven(spine(solo("a"), solo("b")), Script().on("a", BAD), max_steps=1).state.status is RunStatus.FAILED

    def test_skipped_steps_cost_no_step(self):
        plan = spine(solo("a"), route("r", "steps.a.output", {"a": "c"}, "b"), solo("b"), solo("c"))
        bench = driven(plan, max_steps=3)
        assert bench.state.status is RunStatus.SUCCEEDED

    def test_max_retries_reopens_the_failed_step(self):
        script = Script().on("b", BAD, attempt=0)
        calls = iter([BAD, BAD, ok("B")])
        script.on("b", lambda dispatch: next(calls), attempt=0)
        bench = driven(spine(solo("a"), solo("b")), script, max_retries=2)
        assert bench.dispatcher.steps() == ["a", "b", "b", "b"]
        assert bench.state.status is RunStatus.SUCCEEDED

    def test_max_retries_end(self):
        bench = driven(spine(solo("a")), Script().on("a", BAD), max_retries=2)
        assert bench.dispatcher.steps() == ["a"] * 3
        assert bench.state.status is RunStatus.FAILED

    def test_a_time_limit_aborts_what_runs_and_leaves_the_run_active(self):
        bench = driven(spine(solo("a"), solo("b")), Script().on("b", ok(), delay_ms=10_000), timeout_ms=500)
        end = bench.reports[-1].end
        assert (end.halt, end.cause) == (Halt.INTERRUPTED, "timeout")
        assert bench.dispatcher.cancelled[0].step == "b"
        assert bench.events(AttemptEnded)[-1].outcome.reason is Reason.ABORTED
        assert bench.state.status is RunStatus.ACTIVE
        assert bench.state.current_step == "b"
        bench.script.on("b", ok("B"))
        bench.drive()
        assert bench.dispatcher.steps() == ["b"]
        assert bench.state.status is RunStatus.SUCCEEDED


class TestBudget:
    """Ceilings over the whole life of a run (akm reference, "Budget ceilings"; facts 17)."""

    def test_max_units_stops_the_step_whatever_it_tolerates(self):
        plan = spine(tolerant(fan_out("a", "params.l", width=1)), budget=budget(max_units=2))
        bench = driven(plan, params={"l": [1, 2, 3]})
        assert len(bench.asked()) == 2
        assert bench.step("a").reason is Reason.BUDGET_EXCEEDED
        assert "budget exceeded (max_units ceiling)" in bench.step("a").summary
        assert bench.step("a").detail == {"error": "budget exceeded (max_units ceiling)"}

    def test_a_budget_just_large_enough_is_enough(self):
        plan = spine(fan_out("a", "params.l"), budget=budget(max_units=3))
        assert driven(plan, params={"l": [1, 2, 3]}).state.status is RunStatus.SUCCEEDED

    def test_retries_count(self):
        plan = spine(solo("a", repeat=retry(5)), budget=budget(max_units=3))
        bench = driven(plan, Script().on("a", BAD))
        assert len(bench.asked()) == 3
        assert bench.step("a").reason is Reason.BUDGET_EXCEEDED

    def test_it_holds_across_resumes_and_reuse_is_free(self):
        plan = spine(fan_out("a", "params.l", width=1), budget=budget(max_units=4))
        bench = driven(plan, Script().on("a", BAD, unit=1), params={"l": [1, 2, 3]})
        assert len(bench.asked()) == 2
        bench.script.on("a", ok(), unit=1)
        bench.resume()
        assert bench.dispatcher.calls("a") == [(1, 0), (2, 0)]
        assert bench.state.status is RunStatus.SUCCEEDED
        assert bench.state.dispatched == 4

    def test_max_tokens_is_checked_before_the_next_dispatch(self):
        plan = spine(solo("a"), solo("b"), solo("c"), budget=budget(max_tokens=10))
        bench = driven(plan, Script().on("a", ok("A", tokens=4)).on("b", ok("B", tokens=6)))
        assert bench.statuses() == "a=succeeded b=succeeded c=failed"
        assert bench.step("c").error == "budget exceeded (max_tokens ceiling)"

    def test_the_lifetime_cap_stops_a_run(self):
        from msgspec.structs import replace

        plan = spine(solo("a", repeat=retry(5)))
        capped = replace(plan, policies=replace(plan.policies, unit_cap=3))
        bench = driven(capped, Script().on("a", BAD))
        assert len(bench.asked()) == 3
        assert bench.step("a").reason is Reason.UNIT_CAP_EXCEEDED
        assert plan.policies.unit_cap == 10_000

    def test_running_siblings_finish_and_are_journaled(self):
        plan = spine(fan_out("a", "params.l", width=2), budget=budget(max_units=2))
        bench = driven(plan, Script().on("a", ok("v"), delay_ms=10), params={"l": [1, 2, 3]})
        assert len(bench.events(AttemptEnded)) == 2
        assert bench.step("a").status == "failed"
