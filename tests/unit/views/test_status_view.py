"""Status envelopes and unit rows (akm facts 19 and 21.3)."""

import time

import msgspec

from flowstone.formats.akm_common.dialect import AkmDialect
from flowstone.plan.model import Gate
from flowstone.run.events import AttemptStarted, DriverStarted, RunAbandoned, StepOpened
from flowstone.run.fold import fold
from flowstone.run.record import RunRow
from flowstone.run.state import State
from flowstone.testing.plans import fan_out, retry, route, solo, spine
from flowstone.testing.scripted_dispatcher import Script
from flowstone.views.runs import run_list
from flowstone.views.status import status_view
from flowstone.views.units import unit_rows
from tests.driving import RUN, Bench, bad, driven, ok

WORD = AkmDialect().word


def view(bench, **options):
    state = bench.state
    row = bench.store.load(RUN)
    return status_view(RunRow(row.record, state.summary()), state, WORD, bench.clock.now_ms(), **options)


def test_envelope_of_a_completed_run():
    shown = view(driven(spine(solo("a", instructions="Do a."), solo("b"))))
    assert shown["shape"] == "workflow-status"
    assert shown["schemaVersion"] == 1
    run = shown["run"]
    assert (run["status"], run["currentStepId"], run["executionSupport"]) == ("completed", None, "supported")
    assert run["completedAt"].endswith("Z")
    assert "outputs" not in run
    first = shown["workflow"]["steps"][0]
    assert (first["id"], first["title"], first["instructions"]) == ("a", "a", "Do a.")
    assert (first["sequenceIndex"], first["status"]) == (0, "completed")
    assert "units" not in shown


def test_status_words():
    shown = view(driven(spine(solo("a"), solo("b"), solo("c")), Script().series("b", [bad()])))
    assert [step["status"] for step in shown["workflow"]["steps"]] == ["completed", "failed", "pending"]
    assert (shown["run"]["status"], shown["run"]["currentStepId"]) == ("failed", "b")
    assert shown["run"]["completedAt"] is None
    assert "evidence" not in shown["workflow"]["steps"][2]


def test_open_step_is_pending_and_its_unit_runs():
    bench = Bench(spine(solo("a")))
    state = State(RUN, bench.plan)
    for event in (DriverStarted(1_000, "d"), StepOpened("a", 1_001), AttemptStarted("a", "a:solo", 1_002, "h")):
        fold(state, event)
    shown = status_view(RunRow(bench.store.load(RUN).record, state.summary()), state, WORD, 91_002, units=True)
    assert shown["workflow"]["steps"][0]["status"] == "pending"
    assert "completedAt" not in shown["workflow"]["steps"][0]
    row = shown["units"][0]
    assert (row["status"], row["stale"], row["staleIdleMs"], row["finishedAt"]) == ("running", True, 90_000, None)
    assert row["startedAt"] == "1970-01-01T00:00:01.002Z"


def test_abandoned_run_is_failed():
    bench = driven(spine(solo("a"), solo("b")), max_steps=1)
    state = bench.state
    fold(state, RunAbandoned(bench.clock.now_ms()))
    shown = status_view(RunRow(bench.store.load(RUN).record, state.summary()), state, WORD, bench.clock.now_ms())
    assert shown["run"]["status"] == "failed"
    assert shown["run"]["completedAt"] is not None


def test_skip_note_and_rubric():
    gated = msgspec.structs.replace(solo("a"), gate=Gate("All is well."))
    plan = spine(gated, route("r", "params.v", {"x": "b", "y": "c"}), solo("b"), solo("c"))
    state = State(RUN, plan)
    shown = status_view(RunRow(Bench(spine(solo("a"))).store.load(RUN).record, state.summary()), state, WORD, 0)
    assert shown["workflow"]["steps"][0]["completionCriteria"] == ["All is well."]
    plan = spine(solo("a"), route("r", "steps.a.output", {"x": "b", "y": "c"}), solo("b"), solo("c"))
    steps = view(driven(plan, Script().series("a", [ok("x")])))["workflow"]["steps"]
    assert steps[3]["status"] == "skipped"
    assert steps[3]["notes"] == 'Skipped by route: step "r" selected "b".'


def test_verb_warnings_and_check_in():
    bench = driven(spine(solo("a"), solo("b")), max_steps=1)
    shown = view(bench, verb="resume", warnings=("changed",))
    assert (shown["shape"], shown["warnings"]) == ("workflow-resume", ["changed"])
    assert "checkin" not in shown
    bench.clock.advance(90_000)
    idle = view(bench)["checkin"]
    assert idle["signal"] == "continue"
    assert idle["idleMs"] >= 90_000
    assert RUN in idle["directive"]


def test_attempts_are_rows():
    bench = driven(spine(solo("a", repeat=retry(1))), Script().series("a", [bad(error="first"), ok("out")]))
    rows = view(bench, units=True)["units"]
    assert [row["unitId"] for row in rows] == ["a:solo", "a:solo~r1"]
    assert [row["status"] for row in rows] == ["failed", "completed"]
    assert [row["failureReason"] for row in rows] == ["non_zero_exit", None]
    assert [row["diagnostic"] for row in rows] == ["first", "out"]
    assert {row["nodeId"] for row in rows} == {"a"}
    assert {row["runtimeKind"] for row in rows} == {"exec"}
    assert {row["engine"] for row in rows} == {None}


def test_map_units_and_clipped_diagnostic():
    bench = driven(spine(fan_out("m", "params.xs")), Script().series("m", [ok("z" * 3_000)]), {"xs": [1]})
    (row,) = view(bench, units=True)["units"]
    assert row["nodeId"] == "m.unit"
    assert row["unitId"].startswith("m.unit:")
    assert row["diagnostic"] == "z" * 2_000 + "…"


def test_lost_attempt():
    bench = Bench(spine(solo("a")))
    state = State(RUN, bench.plan)
    for event in (
        DriverStarted(1, "d"),
        StepOpened("a", 2),
        AttemptStarted("a", "a:solo", 3, "h"),
        DriverStarted(9, "e"),
    ):
        fold(state, event)
    (row,) = unit_rows(state, WORD, 10)
    assert (row["status"], row["failureReason"]) == ("failed", "aborted")
    fold(state, StepOpened("a", 11))
    fold(state, AttemptStarted("a", "a:solo", 12, "h"))
    (row,) = unit_rows(state, WORD, 13)
    assert (row["status"], row["attempts"]) == ("running", 2)


def test_list():
    bench = driven(spine(solo("a")))
    shown = run_list([bench.store.load(RUN)], WORD)
    assert shown["shape"] == "workflow-list"
    assert shown["runs"][0]["id"] == RUN
    assert shown["runs"][0]["scopeKey"] == "/here"


def test_ten_thousand_units_are_shown_fast():
    bench = driven(spine(fan_out("m", "params.xs")), None, {"xs": list(range(10_000))})
    state = bench.state
    row = RunRow(bench.store.load(RUN).record, state.summary())
    began = time.process_time()
    shown = status_view(row, state, WORD, 0, units=True)
    assert len(shown["units"]) == 10_000
    assert time.process_time() - began < 2
