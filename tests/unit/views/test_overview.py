"""Where a run stands: JSON with exact values, and lines for people."""

import json

from flowstone.run.events import RunInterrupted, RunStatus, Status
from flowstone.testing.plans import dag, fan_out, solo, spine
from flowstone.values import pretty_json
from flowstone.views.overview import document, iso_time, run_entry, text_lines
from tests.unit.views.journals import (
    RUN,
    T0,
    bad,
    broke,
    closed,
    driver,
    ended,
    good,
    opened,
    ran,
    row_of,
    run_closed,
    started,
    state_of,
)


def of(plan, events, **options):
    state = state_of(plan, events)
    return document(row_of(plan, state), state, T0 + 5_000, **options)


def lines(plan, events, **options):
    state = state_of(plan, events)
    return text_lines(row_of(plan, state), state, T0 + 5_000, **options)


def test_numbers_stay_exact_and_the_json_is_strict():
    value = {"big": 12345678901234567890123, "f": 0.1, "whole": 1.0}
    plan = spine(solo("a"))
    found = of(plan, [driver(), *ran("a", 0, 10, value), run_closed(10, RunStatus.SUCCEEDED, outputs={"v": 2**70})])
    text = pretty_json(found)
    assert "12345678901234567890123" in text
    assert str(2**70) in text
    assert json.loads(text)["steps"][0]["output"] == value


def test_a_failed_run_tells_step_reason_and_times():
    found = of(spine(solo("a"), solo("b")), [driver(), *broke("a", 0, 1_500), run_closed(1_500, RunStatus.FAILED)])
    assert (found["run"], found["status"], found["currentStep"]) == (RUN, "failed", "a")
    step = found["steps"][0]
    assert (step["status"], step["reason"], step["error"]) == ("failed", "non_zero_exit", "exited 1")
    assert step["durationMs"] == 1_500
    assert step["startedAt"] == iso_time(T0)
    assert found["steps"][1]["status"] == "pending"
    assert found["durationMs"] == 1_500


def test_units_count_and_have_rows():
    plan = spine(fan_out("m", "params.items"))
    events = [driver(), opened("m", 0, 3)]
    events += [started("m", 0, unit="u0"), ended("m", 10, bad("exited 3", "boom"), unit="u0")]
    events += [started("m", 20, unit="u0", number=1), ended("m", 30, good(1), unit="u0", number=1)]
    events += [started("m", 30, unit="u1", index=1), ended("m", 40, bad("exited 4", "why"), unit="u1", index=1)]
    found = of(plan, events, units=True)
    rows = found["steps"][0]["unitRows"]
    assert [(row["unit"], row["status"], row["attempts"]) for row in rows] == [
        ("u0", "succeeded", 2),
        ("u1", "failed", 1),
    ]
    assert (rows[1]["reason"], rows[1]["diagnostic"]) == ("non_zero_exit", "why")
    assert found["steps"][0]["units"]["total"] == 3


def test_lines_of_a_failure_show_its_output_plainly():
    shown = lines(spine(solo("a")), [driver(), *broke("a", 0, 900, diagnostic="\x1b[31mboom\x1b[0m\nat 3")], units=True)
    assert "  ✕ a  failed  900ms" in shown
    assert "      non_zero_exit: exited 1" in shown
    assert "      a:solo  failed  non_zero_exit  900ms" in shown
    assert shown[-2:] == ["          boom", "          at 3"]


def test_lines_use_the_languages_word_and_say_why_skipped():
    plan = dag(solo("a"), solo("b", needs=("a",)), solo("c"))
    events = [
        driver(),
        *broke("a", 0, 10),
        closed("b", 10, Status.UPSTREAM_FAILED, error="an upstream step failed"),
        closed("c", 10, Status.SKIPPED, detail={"note": 'Skipped by route: step "r" selected "x".'}),
    ]
    shown = lines(plan, events, word=lambda status: "blocked" if status == "upstream_failed" else status)
    assert "  ✕ b  blocked" in shown
    assert "  - c  skipped" in shown
    assert '      Skipped by route: step "r" selected "x".' in shown


def test_interrupted_and_not_started():
    plan = spine(solo("a"))
    assert lines(plan, [])[0] == "Flow: active, not started, not driven now (flowstone resume goes on)"
    stopped = lines(plan, [driver(), RunInterrupted(T0 + 9, "signal:SIGINT")])
    assert stopped[0] == "Flow: active, interrupted (signal:SIGINT), not driven now (flowstone resume goes on)"


def test_a_large_output_is_named_by_its_digest():
    events = [driver(), opened("a", 0), closed("a", 5, blob="ab" * 32)]
    assert of(spine(solo("a")), events)["steps"][0]["outputDigest"] == "ab" * 32
    assert "      = (large value, digest abababababab)" in lines(spine(solo("a")), events)


def test_outputs_and_run_error_are_shown():
    plan = spine(solo("a"))
    shown = lines(plan, [driver(), *ran("a", 0, 1, "x"), run_closed(1, RunStatus.SUCCEEDED, outputs={"v": [1, "é"]})])
    assert shown[-2:] == ["outputs", '  v = [1,"é"]']
    failed = lines(plan, [driver(), *ran("a", 0, 1), run_closed(1, RunStatus.FAILED, error="outputs.v: no such key")])
    assert failed[-1] == "error: outputs.v: no such key"


def test_a_list_entry():
    plan = spine(solo("a"))
    entry = run_entry(row_of(plan, state_of(plan, [driver(), *broke("a", 0, 1), run_closed(1, RunStatus.FAILED)])))
    assert (entry["run"], entry["status"], entry["currentStep"]) == (RUN, "failed", "a")
