"""Fan-outs: order, nulls, reducers, width, failure and reuse (akm facts 14, 17, 19.4; decisions 8, 13, 14)."""

from __future__ import annotations

import pytest

from flowstone.run.events import AttemptStarted, RunStatus, StepClosed
from flowstone.run.outcome import Reason
from flowstone.testing.plans import command, fan_out, retry, solo, spine, tolerant
from flowstone.testing.scripted_dispatcher import Script, item_of
from flowstone.values import sha256_hex
from tests.driving import BAD, Bench, driven, ok


def test_results_stand_in_item_order_whatever_ends_first():
    script = Script().on("m", ok("slow"), unit=0, delay_ms=90).on("m", ok("fast"), unit=1, delay_ms=5)
    bench = driven(spine(fan_out("m", "params.l")), script, {"l": ["x", "y", "z"]})
    assert bench.artifact("m") == ["slow", "fast", 'm:"z"']


def test_a_tolerated_failure_is_a_null_slot():
    plan = spine(tolerant(fan_out("m", "params.l")))
    bench = driven(plan, Script().on("m", BAD, unit="y"), {"l": ["x", "y", "z"]})
    assert bench.artifact("m") == ['m:"x"', None, 'm:"z"']
    assert bench.state.status is RunStatus.SUCCEEDED
    assert "2 succeeded, 1 failed. Failures (recorded, on_error: continue): m.unit:" in bench.step("m").summary


def test_an_absent_result_is_a_null_slot():
    bench = driven(spine(fan_out("m", "params.l")), Script().on("m", ok(absent=True), unit=0), {"l": [1, 2]})
    assert bench.artifact("m") == [None, "m:2"]


@pytest.mark.parametrize(("vote", "artifact"), [(False, []), (True, None)])
def test_an_empty_list_dispatches_nothing_and_completes(vote, artifact):
    bench = driven(spine(fan_out("m", "params.l", vote=vote), solo("b")), params={"l": []})
    assert bench.asked()[0].step == "b"
    assert bench.artifact("m") == artifact
    assert bench.step("m").summary == (
        'Executed 0 unit(s) for step "m" via workflow orchestration: 0 succeeded, 0 failed. The list was empty.'
    )


def test_the_schema_of_an_empty_list_is_still_checked():
    plan = spine(fan_out("m", "params.l", schema={"type": "array", "minItems": 1}, has_schema=True))
    assert driven(plan, params={"l": []}).step("m").reason is Reason.VALIDATION_ERROR


def test_null_items_and_duplicates_are_units_like_others():
    bench = driven(spine(fan_out("m", "params.l")), params={"l": [None, "a", "a", None, {"b": 1, "a": 2}]})
    asked = bench.asked()
    a, null = sha256_hex('"a"'), sha256_hex("null")
    assert [d.unit for d in asked[:4]] == [f"m.unit:{null}", f"m.unit:{a}", f"m.unit:{a}#2", f"m.unit:{null}#2"]
    assert dict(asked[0].context)["FLOW_ITEM"] == "null"
    assert dict(asked[4].context)["FLOW_ITEM"] == '{"a":2,"b":1}'
    assert [dict(d.context)["FLOW_ITEM_INDEX"] for d in asked] == ["0", "1", "2", "3", "4"]
    assert bench.artifact("m")[:2] == ["m:null", 'm:"a"']


@pytest.mark.parametrize(
    ("value", "kind"), [("text", "string"), ({"a": 1}, "object"), (3, "number"), (True, "boolean")]
)
def test_what_is_no_list_fails_the_step(value, kind):
    bench = driven(spine(fan_out("m", "params.l")), params={"l": value})
    assert bench.step("m").error == f'Step "m" fan-out "over" (params.l) resolved to {kind}, not an array.'
    assert bench.asked() == []


def test_a_list_that_is_not_there_fails_the_step():
    error = driven(spine(fan_out("m", "params.l"))).step("m").error
    assert (
        error == 'Step "m" fan-out "over" (params.l) failed to resolve: params.l is not defined in the run\'s params.'
    )


def test_more_than_ten_thousand_items_fail_the_step():
    bench = driven(spine(fan_out("m", "params.l")), params={"l": [0] * 10_001})
    assert bench.step("m").reason is Reason.UNIT_CAP_EXCEEDED
    assert bench.asked() == []


class TestVote:
    def test_the_most_frequent_result_wins_without_a_majority(self):
        script = Script().on("m", ok({"v": 1})).on("m", ok("b"), unit=0).on("m", ok("c"), unit=1)
        bench = driven(spine(fan_out("m", "params.l", vote=True)), script, {"l": [1, 2, 3, 4]})
        assert bench.artifact("m") == {"v": 1}
        assert bench.step("m").detail == {"vote": {"winner": {"v": 1}, "votes": 2, "total": 4}}

    def test_a_tie_at_the_top_fails_also_a_tolerant_step(self):
        plan = spine(tolerant(fan_out("m", "params.l", vote=True)))
        bench = driven(plan, Script().on("m", ok("a"), unit=0).on("m", ok("b"), unit=1), {"l": [1, 2]})
        assert bench.step("m").reason is Reason.VOTE_TIED
        assert "voteError" in bench.step("m").detail

    def test_no_success_fails(self):
        plan = spine(tolerant(fan_out("m", "params.l", vote=True)))
        assert driven(plan, Script().on("m", BAD), {"l": [1]}).step("m").status == "failed"

    def test_equal_objects_are_one_candidate_whatever_the_order_of_their_keys(self):
        script = Script().on("m", ok({"a": 1, "b": 2}), unit=0).on("m", ok({"b": 2, "a": 1}), unit=1)
        bench = driven(spine(fan_out("m", "params.l", vote=True)), script.on("m", ok("x"), unit=2), {"l": [1, 2, 3]})
        assert bench.artifact("m") == {"a": 1, "b": 2}


class TestWidth:
    @pytest.mark.parametrize(
        ("own", "step", "host", "most"), [(3, 64, None, 3), (8, 2, None, 2), (8, 64, 5, 5), (1, 64, 9, 1), (8, 9, 0, 1)]
    )
    def test_it_is_the_smallest_limit_and_never_below_one(self, own, step, host, most):
        plan = spine(fan_out("m", "params.l", width=own), width=step)
        script = Script().on("m", ok(), delay_ms=10)
        bench = driven(plan, script, {"l": list(range(20))}, host_width=host)
        assert bench.dispatcher.most_running["m"] == most
        assert len(bench.asked()) == 20

    def test_a_slot_is_filled_again_at_once(self):
        script = Script().on("m", ok(), delay_ms=10).on("m", ok(), unit=0, delay_ms=1_000)
        bench = driven(spine(fan_out("m", "params.l", width=2)), script, {"l": list(range(50))})
        assert bench.clock.now_ms() - 1_700_000_000_000 < 1_100


class TestFailFast:
    """After the first failure no further sibling starts; running ones finish (akm decision 8)."""

    def test_no_sibling_starts_after_a_failure(self):
        script = Script().on("m", ok("v"), delay_ms=50).on("m", BAD, unit=1, delay_ms=10)
        bench = driven(spine(fan_out("m", "params.l", width=3)), script, {"l": [0, 1, 2, 3, 4]})
        assert bench.dispatcher.calls("m") == [(0, 0), (1, 0), (2, 0)]
        assert len(bench.dispatcher.ended) == 3
        assert bench.step("m").summary.startswith(
            'Executed 3 unit(s) for step "m" via workflow orchestration: 2 succeeded, 1 failed. Failures: m.unit:'
        )

    def test_retries_come_first(self):
        script = Script().on("m", ok("v"), delay_ms=5).series("m", [BAD, ok("second")], unit=0)
        plan = spine(fan_out("m", "params.l", width=1, repeat=retry(1)))
        bench = driven(plan, script, {"l": [0, 1]})
        assert bench.artifact("m") == ["second", "v"]

    def test_a_sibling_that_fails_later_is_not_retried(self):
        script = Script().on("m", BAD, unit=0, delay_ms=10).on("m", BAD, unit=1, delay_ms=50)
        plan = spine(fan_out("m", "params.l", width=2, repeat=retry(1, "non_zero_exit", base_ms=0)))
        script.on("m", BAD, unit=0, attempt=1)
        bench = driven(plan, script, {"l": [0, 1, 2]})
        assert bench.dispatcher.calls("m") == [(0, 0), (1, 0), (0, 1)]
        assert "0 succeeded, 2 failed" in bench.step("m").summary


class TestResume:
    """Completed units are reused when their input hash is the same (akm decision 14)."""

    def test_only_what_did_not_succeed_runs_again(self):
        plan = spine(fan_out("m", "params.l", width=1))
        bench = driven(plan, Script().on("m", BAD, unit=2), {"l": list("abcd")})
        bench.script.on("m", ok("C"), unit=2)
        bench.resume()
        assert bench.dispatcher.calls("m") == [(2, 0), (3, 0)]
        assert bench.artifact("m") == ['m:"a"', 'm:"b"', "C", 'm:"d"']

    def test_a_retry_that_succeeded_is_reused_too(self):
        plan = spine(fan_out("m", "params.l", width=1, repeat=retry(1)))
        script = Script().series("m", [BAD, ok("B")], unit=0).on("m", BAD, unit=1)
        bench = driven(plan, script, {"l": [1, 2]})
        bench.script.on("m", ok("X"))
        bench.script.on("m", ok("Y"), unit=1)
        bench.resume()
        assert bench.dispatcher.calls("m") == [(1, 0)]
        assert bench.artifact("m") == ["B", "Y"]

    def test_other_params_run_everything_afresh(self):
        plan = spine(fan_out("m", "params.l", width=1))
        bench = driven(plan, Script().on("m", BAD, unit=1), {"l": [1, 2], "other": 1})
        bench.params = {"l": [1, 2], "other": 2}
        bench.script.on("m", ok("again"), unit=1)
        bench.resume()
        assert bench.dispatcher.calls("m") == [(0, 0), (1, 0)]

    def test_an_item_that_moved_is_reused_by_its_hash(self):
        plan = spine(solo("a"), fan_out("m", "steps.a.output", width=1))
        bench = driven(plan, Script().on("a", ok(["x", "y"])).on("m", BAD, unit="y"))
        assert [d.unit for d in bench.asked()][1:] == [f"m.unit:{sha256_hex(text)}" for text in ('"x"', '"y"')]
        bench.script.on("m", ok("Y"), unit="y")
        bench.resume()
        assert [item_of(d) for d in bench.dispatcher.asked] == ["y"]
        assert bench.artifact("m") == ['m:"x"', "Y"]


class TestHash:
    """The input hash tells apart whatever a unit could tell apart (akm facts 9.5)."""

    def test_it_is_the_documented_recipe(self):
        plan = spine(fan_out("m", "params.l", instructions="do it"))
        bench = driven(plan, params={"l": ["x"]})
        text = (
            '{"environment":[],"frozenTarget":{"argv":["m"],"environment":{"context":"FLOW_"},"timeoutMs":null,'
            '"type":"exec"},"hashVersion":7,"inputs":[],"isolation":"none","item":"x","nodeId":"m.unit",'
            '"params":{"l":["x"]},"role":"unit","schema":null,"stepId":"m","template":"do it"}'
        )
        assert bench.asked()[0].hash == sha256_hex(f"flow.unit\0v1\0{text}")

    @pytest.mark.parametrize(
        ("one", "other"),
        [
            ({"l": ["1"]}, {"l": [1]}),
            ({"l": [None]}, {"l": ["null"]}),
            ({"l": ['x","role":"y']}, {"l": ["x"]}),
            ({"l": [1.5], "a": {"b": 1}}, {"l": [1.5], "a.b": 1}),
            ({"l": [[1, [2]]]}, {"l": [[[1], 2]]}),
        ],
    )
    def test_structure_never_collides(self, one, other):
        plan = spine(fan_out("m", "params.l"))
        hashes = {driven(plan, params=params).asked()[0].hash for params in (one, other)}
        assert len(hashes) == 2

    def test_retry_and_failure_policy_do_not_count(self):
        plain = driven(spine(fan_out("m", "params.l")), params={"l": [1]}).asked()[0].hash
        other = spine(tolerant(fan_out("m", "params.l", repeat=retry(3))))
        assert driven(other, params={"l": [1]}).asked()[0].hash == plain

    def test_the_command_counts(self):
        hashes = {driven(spine(solo("a", *argv))).asked()[0].hash for argv in (["x", "y"], ["x y"], ["x", "y", ""])}
        assert len(hashes) == 3
        assert driven(spine(solo("a", unit=command("x", timeout_ms=5, timeout_set=True)))).asked()[0].hash in {
            driven(spine(solo("a", "x"))).asked()[0].hash
        }


def test_ten_thousand_units_cost_each_the_same(monkeypatch):
    """Folds, hashes and slots counted: none grows with the width."""
    from flowstone.scheduler import attempts, commands

    counts = {"folds": 0, "hashes": 0, "slots": 0}

    def counting(name, function):
        def counted(*args):
            counts[name] += 1
            return function(*args)

        return counted

    monkeypatch.setattr(commands, "fold", counting("folds", commands.fold))
    monkeypatch.setattr(attempts, "identity_of", counting("hashes", attempts.identity_of))
    monkeypatch.setattr(attempts, "free_in_step", counting("slots", attempts.free_in_step))
    seen = {}
    for width in (1_000, 10_000):
        counts.update(dict.fromkeys(counts, 0))
        bench = driven(spine(fan_out("m", "params.l", width=64)), params={"l": list(range(width))})
        assert bench.state.status is RunStatus.SUCCEEDED
        assert len(bench.events(AttemptStarted)) == width
        assert len(bench.events(StepClosed)) == 1
        seen[width] = dict(counts)
    for name in counts:
        assert seen[10_000][name] < 10.5 * seen[1_000][name], name


def test_reuse_of_ten_thousand_units_looks_each_up_once(monkeypatch):
    from flowstone.scheduler import attempts

    plan = spine(fan_out("m", "params.l", width=64))
    bench = Bench(plan, Script().on("m", BAD, unit=9_998), {"l": list(range(9_999))})
    bench.drive()
    calls = []
    real = attempts.identity_of
    monkeypatch.setattr(attempts, "identity_of", lambda *args: calls.append(1) or real(*args))
    bench.script.on("m", ok("last"), unit=9_998)
    bench.resume()
    assert bench.dispatcher.calls("m") == [(9_998, 0)]
    assert len(calls) <= 10_010
    assert bench.state.status is RunStatus.SUCCEEDED
