"""Evidence rows (akm facts 14 and 3.4)."""

from flowstone.run.outcome import Reason
from flowstone.testing.plans import command, fan_out, route, solo, spine, tolerant
from flowstone.testing.scripted_dispatcher import Script
from flowstone.values import canonical_bytes
from flowstone.views.evidence import TRUNCATED, evidence_of
from tests.driving import bad, driven, ok

ITEMS = {"xs": ["a", "b", "c"]}


def evidence(bench, step, **options):
    return evidence_of(bench.state.steps[step], **options)


def by_item(*outcomes):
    """A script that answers the items of step m in turn."""
    script = Script()
    for index, outcome in enumerate(outcomes):
        script.on("m", outcome, unit=index)
    return script


def test_solo_text():
    bench = driven(spine(solo("a")), Script().series("a", [ok("hello")]))
    assert evidence(bench, "a") == {
        "units": [{"unitId": "a:solo", "ok": True, "text": "hello"}],
        "itemCount": 1,
        "output": "hello",
    }


def test_typed_result():
    unit = command("a", schema={"type": "object"}, has_schema=True)
    bench = driven(spine(solo("a", unit=unit)), Script().series("a", [ok({"n": 1})]))
    assert evidence(bench, "a")["units"] == [{"unitId": "a:solo", "ok": True, "result": {"n": 1}}]


def test_text_of_a_unit_is_clipped_and_the_output_is_whole():
    bench = driven(spine(solo("a")), Script().series("a", [ok("x" * 3_000)]))
    row = evidence(bench, "a")
    assert row["units"][0]["text"] == "x" * 2_000 + "…"
    assert row["output"] == "x" * 3_000


def test_no_output():
    bench = driven(spine(solo("a")), Script().series("a", [ok(None, absent=True)]))
    row = evidence(bench, "a")
    assert row["units"] == [{"unitId": "a:solo", "ok": True}]
    assert row["output"] is None


def test_failed_items_are_null_and_carry_no_text():
    bench = driven(spine(tolerant(fan_out("m", "params.xs"))), by_item(ok("A"), bad(error="secret"), ok("C")), ITEMS)
    row = evidence(bench, "m")
    assert row["output"] == ["A", None, "C"]
    assert row["itemCount"] == 3
    assert row["units"][1]["failureReason"] == Reason.NON_ZERO_EXIT
    assert "secret" not in str(row)


def test_vote():
    bench = driven(spine(fan_out("m", "params.xs", vote=True)), by_item(ok("y"), ok("n"), ok("y")), ITEMS)
    row = evidence(bench, "m")
    assert row["vote"] == {"winner": "y", "votes": 2, "total": 3}
    assert row["output"] == "y"


def test_route_and_its_skipped_target():
    plan = spine(solo("a"), route("r", "steps.a.output", {"x": "b", "y": "c"}), solo("b"), solo("c"))
    bench = driven(plan, Script().series("a", [ok("x")]))
    assert evidence(bench, "r") == {"route": {"input": "steps.a.output", "value": "x", "selected": "b"}}
    assert evidence(bench, "c") is None


def test_failure_of_the_whole_step():
    bench = driven(spine(fan_out("m", "params.none")))
    row = evidence(bench, "m")
    assert set(row) == {"error"}
    assert "params.none" in row["error"]


def test_pending_step_has_none():
    bench = driven(spine(solo("a"), solo("b")), max_steps=1)
    assert evidence(bench, "b") is None


def test_large_row_is_shortened_with_a_marker():
    bench = driven(spine(solo("a")), Script().series("a", [ok({"t": "é" * 400_000, "u": "z" * 400_000})]))
    step = bench.state.steps["a"]
    row = evidence_of(step)
    assert len(canonical_bytes(row)) <= 1024 * 1024
    assert row["output"][TRUNCATED] is True
    assert row["output"]["limitBytes"] == 1024 * 1024
    assert row["output"]["originalBytes"] > 1024 * 1024
    assert len(row["output"]["preview"]) == 1_000
    assert row["itemCount"] == 1


def test_artifact_outside_the_journal_is_told_by_a_marker():
    bench = driven(spine(solo("a")), Script().series("a", [ok("z" * 1_200_000)]))
    step = bench.bare_state.steps["a"]
    assert evidence_of(step)["output"] == {
        TRUNCATED: True,
        "reason": "the artifact is kept outside the row",
        "originalBytes": None,
        "limitBytes": 1024 * 1024,
    }
    shown = evidence_of(step, lambda digest: (1_200_002, '"zzz'))["output"]
    assert (shown["originalBytes"], shown["preview"]) == (1_200_002, '"zzz')
