"""Retry and poll: by reason, by count, by time, and without a slot while waiting (akm facts 18; orun decision 3)."""

from __future__ import annotations

from flowstone.run.events import AttemptStarted, RunStatus
from flowstone.run.outcome import Reason
from flowstone.testing.plans import command, computed, dag, poll, retry, solo, spine
from flowstone.testing.scripted_dispatcher import Script
from tests.driving import BAD, bad, driven, ok

START = 1_700_000_000_000


def starts(bench):
    return [event.at - START for event in bench.events(AttemptStarted)]


class TestRetry:
    def test_listed_reasons_are_repeated_as_often_as_allowed(self):
        bench = driven(spine(solo("a", repeat=retry(2, "timeout"))), Script().on("a", bad(Reason.TIMEOUT)))
        assert bench.dispatcher.calls("a") == [(0, 0), (0, 1), (0, 2)]
        assert bench.step("a").reason is Reason.TIMEOUT
        assert bench.state.status is RunStatus.FAILED

    def test_other_reasons_are_not(self):
        bench = driven(spine(solo("a", repeat=retry(2, "timeout"))), Script().on("a", BAD))
        assert bench.dispatcher.calls("a") == [(0, 0)]

    def test_without_a_list_every_failure_is(self):
        script = Script().series("a", [bad(Reason.SPAWN_FAILED), bad(Reason.VALIDATION_ERROR), ok("v")])
        assert driven(dag(solo("a", repeat=retry(2))), script).artifact("a") == "v"

    def test_an_output_that_cannot_be_computed_is_repeated_too(self):
        step = solo("a", repeat=retry(1), outputs=(computed("n", "int(stdout)"),))
        bench = driven(dag(step), Script().series("a", [ok(stdout="x"), ok(stdout="3")]))
        assert bench.artifact("a") == {"n": 3}

    def test_exponential_delays_double_and_are_capped(self):
        step = solo("a", repeat=retry(4, base_ms=1_000, exponential=True))
        assert starts(driven(dag(step), Script().on("a", BAD))) == [0, 1_000, 3_000, 7_000, 15_000]
        far = solo("a", repeat=retry(80, base_ms=3_000_000, exponential=True))
        assert starts(driven(dag(far), Script().on("a", BAD)))[-1] == 3_000_000 + 79 * 3_600_000

    def test_fixed_delays_stay(self):
        step = solo("a", repeat=retry(2, base_ms=500))
        assert starts(driven(dag(step), Script().on("a", BAD))) == [0, 500, 1_000]

    def test_what_the_other_side_asked_for_comes_first(self):
        step = solo("a", repeat=retry(1, base_ms=500))
        assert starts(driven(dag(step), Script().on("a", bad(retry_after_ms=70)))) == [0, 70]

    def test_a_resume_begins_again_at_attempt_zero(self):
        bench = driven(spine(solo("a", repeat=retry(1))), Script().on("a", BAD))
        bench.resume()
        assert bench.dispatcher.calls("a") == [(0, 0), (0, 1)]
        assert bench.step("a").attempts["a:solo", 0].tries == 2


class TestPoll:
    def test_it_goes_on_until_the_condition_holds(self):
        script = Script().series("a", [bad(exit_code=8), bad(exit_code=8), ok(exit_code=0, stdout="done")])
        step = solo("a", repeat=poll("exitCode == 0"), outputs=(computed("o", "stdout"),))
        bench = driven(dag(step), script)
        assert starts(bench) == [0, 100, 200]
        assert bench.artifact("a") == {"o": "done"}

    def test_a_non_zero_exit_can_satisfy_and_is_a_success(self):
        step = solo(
            "a", repeat=poll("exitCode == 8 && stderr.contains('pending')"), outputs=(computed("n", "exitCode"),)
        )
        bench = driven(dag(step), Script().on("a", bad(exit_code=8, stderr="pending")))
        assert bench.artifact("a") == {"n": 8}
        assert bench.state.status is RunStatus.SUCCEEDED

    def test_attempts_count_from_one(self):
        assert starts(driven(dag(solo("a", repeat=poll("attempt == 3"))))) == [0, 100, 200]

    def test_expiry_names_condition_time_attempts_and_the_last_error(self):
        step = solo("a", repeat=poll("exitCode == 0", interval_ms=300, timeout_ms=1_000))
        bench = driven(dag(step), Script().on("a", bad(exit_code=1, error="exited 1: no")))
        assert bench.step("a").reason is Reason.POLL_EXPIRED
        assert bench.step("a").error == (
            "poll: exitCode == 0 not satisfied within 1000ms after 4 attempt(s): exited 1: no"
        )

    def test_an_attempt_that_could_not_run_never_satisfies(self):
        script = Script().series("a", [bad(Reason.SPAWN_FAILED, "not found", ran=False), ok(exit_code=0)])
        bench = driven(dag(solo("a", repeat=poll("true"))), script)
        assert bench.dispatcher.calls("a") == [(0, 0), (0, 1)]
        never = driven(
            dag(solo("a", repeat=poll("true"))), Script().on("a", bad(Reason.SPAWN_FAILED, "nowhere", ran=False))
        )
        assert never.step("a").error.endswith("after 10 attempt(s): nowhere")

    def test_a_condition_that_is_no_bool_fails_at_once(self):
        bench = driven(dag(solo("a", repeat=poll("stdout"))), Script().on("a", ok(stdout="true")))
        assert bench.dispatcher.calls("a") == [(0, 0)]
        assert bench.step("a").error == "poll.until must be a bool, got string"

    def test_an_error_in_the_condition_counts_as_not_yet(self):
        bench = driven(
            dag(solo("a", repeat=poll("output.ready == true"))), Script().on("a", ok({"ready": True}), attempt=2)
        )
        assert bench.dispatcher.calls("a") == [(0, 0), (0, 1), (0, 2)]
        expired = driven(dag(solo("a", repeat=poll("output.ready"))))
        assert expired.step("a").error.endswith(": no such key: ready")

    def test_an_attempt_is_cut_at_the_deadline(self):
        unit = command("a", timeout_ms=900, timeout_set=True)
        step = solo("a", unit=unit, repeat=poll("false", interval_ms=400, timeout_ms=1_000))
        asked = driven(dag(step)).asked()
        assert [dispatch.timeout_ms for dispatch in asked] == [900, 600, 200]

    def test_an_attempt_that_timed_out_does_not_satisfy(self):
        bench = driven(dag(solo("a", repeat=poll("true"))), Script().on("a", bad(Reason.TIMEOUT), attempt=0))
        assert bench.dispatcher.calls("a") == [(0, 0), (0, 1)]

    def test_its_slot_is_free_while_it_waits(self):
        plan = dag(solo("a", repeat=poll("attempt == 2", interval_ms=500)), solo("b"), solo("c"), width=1)
        bench = driven(plan, Script().on("b", ok(), delay_ms=50).on("c", ok(), delay_ms=50))
        assert bench.dispatcher.steps() == ["a", "b", "c", "a"]

    def test_the_sealed_output_error_of_a_satisfied_poll_fails(self):
        step = solo("a", repeat=poll("true"), outputs=(computed("n", "int(stdout)"),))
        bench = driven(dag(step), Script().on("a", ok(stdout="x")))
        assert bench.step("a").reason is Reason.OUTPUT_ERROR
        assert bench.dispatcher.calls("a") == [(0, 0)]
