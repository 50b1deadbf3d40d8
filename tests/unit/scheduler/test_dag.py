"""A DAG: joins, conditions, isolation of failures and tolerance (orun reference; facts 4, decisions 3 and 4)."""

from __future__ import annotations

import pytest

from flowstone.drivers.local import Halt
from flowstone.plan.model import Join
from flowstone.run.events import RunStatus
from flowstone.run.outcome import Reason
from flowstone.testing.plans import cel, computed, dag, retry, solo
from flowstone.testing.scripted_dispatcher import Script
from tests.driving import BAD, Bench, bad, driven, ok


def on(step, *needs, **fields):
    return solo(step, needs=needs, **fields)


def going_on(step, *needs, **fields):
    """A step with `continueOnError`."""
    return on(step, *needs, join=Join.ALL_ENDED, tolerated=True, **fields)


def test_steps_start_when_their_needs_have_ended_in_declared_order():
    plan = dag(on("d", "b", "c"), on("a"), on("b", "a"), on("c", "a"))
    bench = driven(plan, Script().on("b", ok(), delay_ms=50).on("c", ok(), delay_ms=10))
    assert bench.dispatcher.steps() == ["a", "b", "c", "d"]
    assert bench.dispatcher.most_running[""] == 2


def test_a_failure_blocks_its_dependents_at_once_and_others_go_on():
    plan = dag(on("a"), on("b", "a"), on("c", "b"), on("x"), on("y", "x"), on("z", "b", "y"))
    bench = driven(plan, Script().on("a", BAD, delay_ms=10).on("x", ok(), delay_ms=100))
    assert bench.statuses() == (
        "a=failed b=upstream_failed c=upstream_failed x=succeeded y=succeeded z=upstream_failed"
    )
    assert bench.step("b").error == "an upstream step failed"
    assert bench.step("z").closed_at < bench.step("x").closed_at
    assert bench.state.status is RunStatus.FAILED


def test_a_skipped_need_satisfies():
    bench = driven(dag(on("a", when=cel("false")), on("b", "a")))
    assert bench.statuses() == "a=skipped b=succeeded"
    assert bench.state.status is RunStatus.SUCCEEDED


class TestTolerance:
    def test_a_tolerant_step_starts_after_a_failure_and_the_run_still_fails(self):
        bench = driven(dag(on("a"), going_on("b", "a")), Script().on("a", BAD))
        assert bench.statuses() == "a=failed b=succeeded"
        assert bench.state.status is RunStatus.FAILED

    def test_its_own_failure_is_forgiven(self):
        bench = driven(dag(going_on("a"), on("x")), Script().on("a", BAD))
        assert bench.state.status is RunStatus.SUCCEEDED

    def test_its_dependents_still_block_and_spoil_the_run(self):
        bench = driven(dag(going_on("a"), on("b", "a")), Script().on("a", BAD))
        assert bench.statuses() == "a=failed b=upstream_failed"
        assert bench.state.status is RunStatus.FAILED

    def test_unless_they_are_tolerant_too(self):
        bench = driven(dag(going_on("a"), going_on("b", "a")), Script().on("a", BAD))
        assert bench.statuses() == "a=failed b=succeeded"
        assert bench.state.status is RunStatus.SUCCEEDED

    def test_a_blocked_need_always_blocks(self):
        bench = driven(dag(on("a"), on("b", "a"), going_on("c", "b")), Script().on("a", BAD))
        assert bench.statuses() == "a=failed b=upstream_failed c=upstream_failed"

    def test_it_waits_for_all_its_needs(self):
        plan = dag(on("a"), on("x"), going_on("b", "a", "x"))
        bench = driven(plan, Script().on("a", BAD).on("x", ok(), delay_ms=100))
        assert bench.dispatcher.steps() == ["a", "x", "b"]
        assert bench.step("b").opened_at >= bench.step("x").closed_at


class TestCondition:
    def test_false_skips_and_true_runs(self):
        plan = dag(on("a", when=cel("inputs.mode == 'x'")), on("b", when=cel("inputs.mode != 'x'")))
        assert driven(plan, params={"mode": "x"}).statuses() == "a=succeeded b=skipped"

    @pytest.mark.parametrize(
        ("source", "problem"),
        [
            ("inputs.mode", "if: must be a bool, got string"),
            ("inputs.n", "if: must be a bool, got int"),
            ("inputs.d", "if: must be a bool, got double"),
            ("inputs.l", "if: must be a bool, got list"),
            ("inputs.o", "if: must be a bool, got map"),
            ("null", "if: must be a bool, got null_type"),
            ("inputs.missing == 1", "if: no such key: missing"),
            ("1 / (inputs.n - 1) == 1", "if: division by zero"),
        ],
    )
    def test_what_is_no_bool_fails_the_step(self, source, problem):
        params = {"mode": "x", "n": 1, "d": 1.5, "l": [], "o": {}}
        bench = driven(dag(on("a", when=cel(source))), params=params)
        assert bench.statuses() == "a=failed"
        assert bench.step("a").error == problem
        assert bench.asked() == []

    def test_it_is_asked_only_of_a_step_that_may_start(self):
        bench = driven(dag(on("a"), on("b", "a", when=cel("steps.a.exitCode == 0"))), Script().on("a", BAD))
        assert bench.statuses() == "a=failed b=upstream_failed"

    def test_it_sees_what_became_of_its_needs(self):
        when = cel("steps.a.failed && !steps.a.skipped && steps.a.exitCode == 3 && steps.a.stderr == 'oh'")
        failing = bad(exit_code=3, stderr="oh", stdout="")
        bench = driven(dag(going_on("a"), going_on("b", "a", when=when)), Script().on("a", failing))
        assert bench.statuses() == "a=failed b=succeeded"

    def test_a_skipped_step_has_empty_outputs_and_exit_code_zero(self):
        when = cel("steps.a.skipped && steps.a.exitCode == 0 && size(steps.a.outputs) == 0 && steps.a.stdout == ''")
        bench = driven(dag(on("a", when=cel("false")), on("b", "a", when=when)))
        assert bench.statuses() == "a=skipped b=succeeded"


class TestOutputs:
    def test_they_are_sealed_from_the_result(self):
        plan = dag(on("a", outputs=(computed("d", "stdout.trim()"), computed("n", "exitCode"))), on("b", "a"))
        bench = driven(plan, Script().on("a", ok(exit_code=0, stdout=" x \n")))
        assert bench.artifact("a") == {"d": "x", "n": 0}

    @pytest.mark.parametrize(
        ("source", "problem"),
        [
            ("0.0 / 0.0", "outputs.z: NaN cannot be stored as JSON"),
            ("b'x'", "outputs.z: bytes cannot be stored as JSON"),
            ("{1: 2}", "cannot be stored as JSON"),
            ("steps.b.outputs.x", "outputs.z: no such key: x"),
        ],
    )
    def test_one_that_json_cannot_hold_fails_the_step(self, source, problem):
        plan = dag(on("b"), on("a", "b", outputs=(computed("z", source),)))
        bench = driven(plan)
        assert bench.step("a").status == "failed"
        assert bench.step("a").reason is Reason.OUTPUT_ERROR
        assert problem in bench.step("a").error

    def test_null_stays_null(self):
        assert driven(dag(on("a", outputs=(computed("z", "null"),)))).artifact("a") == {"z": None}

    def test_workflow_outputs_see_every_step_and_come_only_with_success(self):
        plan = dag(on("a", outputs=(computed("n", "1"),)), outputs=(computed("x", "steps.a.outputs.n + 1"),))
        assert driven(plan).state.outputs == {"x": 2}
        assert driven(plan, Script().on("a", BAD)).state.outputs is None

    def test_an_error_in_one_fails_the_run(self):
        plan = dag(on("a"), outputs=(computed("z", "steps.a.outputs.nope"),))
        bench = driven(plan)
        assert bench.state.status is RunStatus.FAILED
        assert bench.state.error == "outputs.z: no such key: nope"
        assert bench.reports[-1].end.halt is Halt.ENDED

    def test_values_made_of_secrets_are_scrubbed_before_they_are_recorded(self):
        plan = dag(
            on("a", outputs=(computed("t", "inputs.token"),)),
            on("b", "a", when=cel("{'k': 1}[inputs.token] == 1")),
            outputs=(computed("o", "'<' + inputs.token + '>'"),),
        )
        bench = Bench(plan, params={"token": "hunter22"})
        bench.redact = _scrubbed
        bench.drive()
        texts = [str(entry.event) for entry in bench.store.read("run-00000001")]
        assert not [text for text in texts if "hunter22" in text]
        assert bench.artifact("a") == {"t": "***"}


class TestWidth:
    def test_the_plan_comes_before_the_option_and_the_option_before_four(self):
        steps = [on(f"s{n}") for n in range(10)]
        script = Script()
        for step in steps:
            script.on(step.id, ok(), delay_ms=10)
        assert driven(dag(*steps, width=2), script, run_width=7).dispatcher.most_running[""] == 2
        assert driven(dag(*steps), script, run_width=7, host_width=1).dispatcher.most_running[""] == 7
        assert driven(dag(*steps), script, host_width=1).dispatcher.most_running[""] == 4

    def test_a_step_that_waits_for_its_next_attempt_holds_no_slot(self):
        plan = dag(on("a", repeat=retry(1, base_ms=1_000)), on("b"), width=1)
        bench = driven(plan, Script().series("a", [BAD, ok()]))
        assert bench.dispatcher.steps() == ["a", "b", "a"]

    def test_every_waiting_step_gets_its_turn(self):
        steps = [on(f"s{n}", repeat=retry(2, base_ms=n % 3)) for n in range(40)]
        script = Script()
        for n, step in enumerate(steps):
            script.series(step.id, [BAD, ok()], delay_ms=n % 5)
        bench = driven(dag(*steps, width=3), script)
        assert bench.state.status is RunStatus.SUCCEEDED
        assert bench.dispatcher.most_running[""] == 3


class TestResume:
    def test_only_what_did_not_succeed_runs_again(self):
        plan = dag(on("a"), on("b", when=cel("false")), on("c"), on("d", "c"), on("e", "a"))
        bench = driven(plan, Script().on("c", BAD))
        assert bench.statuses() == "a=succeeded b=skipped c=failed d=upstream_failed e=succeeded"
        bench.script.on("c", ok())
        bench.resume()
        assert bench.dispatcher.steps() == ["c", "d"]
        assert bench.state.status is RunStatus.SUCCEEDED

    def test_a_finished_run_runs_nothing(self):
        bench = driven(dag(on("a")))
        bench.drive()
        assert bench.dispatcher.asked == []


def test_thousands_of_ready_steps_come_to_their_end():
    plan = dag(*(on(f"s{n}") for n in range(2_000)))
    bench = driven(plan)
    assert bench.state.status is RunStatus.SUCCEEDED
    assert bench.dispatcher.steps() == [f"s{n}" for n in range(2_000)]


def _scrubbed(value):
    if isinstance(value, str):
        return value.replace("hunter22", "***")
    if isinstance(value, dict):
        return {key: _scrubbed(inner) for key, inner in value.items()}
    return value
