"""Approvals: answered by anyone at any time, over when their time is, and asked once however often a driver dies."""

from __future__ import annotations

import pytest

from flowstone.errors import CorruptJournal
from flowstone.run.asking import last_asking
from flowstone.run.events import AttemptEnded, AttemptStarted, RunStatus
from flowstone.run.outcome import Reason
from tests.asking import AskingBench
from tests.driving import RUN

HOUR = 3_600_000


def test_the_end_of_the_time_refuses():
    bench = AskingBench(timeout_ms=HOUR)
    begun = bench.clock.now_ms()
    bench.drive()
    step = bench.step("ok")
    assert (step.status, step.reason) == ("failed", Reason.TIMEOUT)
    assert step.error == "approval: nobody decided within 1h0m0s"
    assert bench.step("b").status == "upstream_failed"
    assert 0 <= bench.clock.now_ms() - begun - HOUR < 1_000


def test_the_end_of_the_time_may_approve():
    bench = AskingBench(timeout_ms=1_000, approve_on_timeout=True)
    bench.drive()
    assert bench.state.status is RunStatus.SUCCEEDED
    assert bench.artifact("ok") == {"approved": True, "by": "timeout", "at": "2023-11-14T22:13:21Z", "note": ""}


def test_what_is_asked_is_shown_with_how_to_answer():
    bench = AskingBench(timeout_ms=1_000)
    bench.drive()
    assert bench.told == ["waits for approval: Go on?", f"decide with: approve {RUN} ok   (or reject)"]


@pytest.mark.parametrize("approved", [True, False])
def test_an_answer_while_nobody_drives_is_found(approved):
    bench = AskingBench(timeout_ms=HOUR)
    bench.die_while_asking()
    bench.answer(approved=approved, note="read it")
    bench.drive()
    step = bench.step("ok")
    if approved:
        assert (bench.state.status, step.artifact["by"], step.artifact["note"]) == ("succeeded", "ada", "read it")
    else:
        assert (bench.state.status, step.error) == ("failed", "rejected by ada: read it")


def test_who_and_when_are_in_the_journal():
    bench = AskingBench(timeout_ms=HOUR)
    bench.die_while_asking()
    bench.answer(approved=False, at=1_700_000_001_000)
    bench.drive()
    ended = next(event for event in bench.events(AttemptEnded) if event.step == "ok")
    assert ended.outcome.value == {"approved": False, "by": "ada", "at": "2023-11-14T22:13:21Z", "note": ""}


def test_the_time_runs_while_nobody_drives():
    bench = AskingBench(timeout_ms=HOUR)
    bench.die_while_asking()
    bench.clock.advance(HOUR + 1)
    begun = bench.clock.now_ms()
    bench.drive()
    assert bench.step("ok").reason is Reason.TIMEOUT
    assert bench.clock.now_ms() - begun < 1_000


def test_a_refused_step_is_asked_for_anew_when_the_run_is_resumed():
    bench = AskingBench(timeout_ms=HOUR)
    bench.drive()
    assert bench.state.status is RunStatus.FAILED
    bench.die_while_asking(append=1, reopen=True)
    bench.answer()
    bench.drive()
    assert bench.state.status is RunStatus.SUCCEEDED
    assert len([e for e in bench.events(AttemptStarted) if e.step == "ok"]) == 3
    assert len([e for e in bench.events(AttemptEnded) if e.step == "ok"]) == 2


def test_the_first_answer_stands():
    bench = AskingBench(timeout_ms=HOUR)
    bench.die_while_asking()
    first = bench.answer(approved=False, note="no")
    assert bench.answer(approved=True) == first
    bench.drive()
    assert bench.state.status is RunStatus.FAILED


def test_nobody_is_asked_before_the_step_is_reached():
    bench = AskingBench(timeout_ms=HOUR)
    assert last_asking(bench.store.read(RUN), "ok") is None
    bench.drive()
    assert last_asking(bench.store.read(RUN), "ok") is None


def test_a_broken_store_is_no_answer(monkeypatch):
    bench = AskingBench(timeout_ms=HOUR)

    def broken(*_):
        raise CorruptJournal("gone")

    monkeypatch.setattr(bench.store, "outcome", broken)
    with pytest.raises(CorruptJournal):
        bench.drive()
    assert bench.state.status is RunStatus.ACTIVE


def scrubbing(value):
    match value:
        case dict():
            return {key: scrubbing(inner) for key, inner in value.items()}
        case str():
            return value.replace("on", "*")
        case _:
            return value


def test_what_is_secret_is_scrubbed_from_the_answer():
    bench = AskingBench(timeout_ms=HOUR)
    bench.redact = scrubbing
    bench.die_while_asking()
    bench.answer(approved=False, note="on and on")
    bench.drive()
    assert bench.step("ok").error == "rejected by ada: * and *"
    ended = next(event for event in bench.events(AttemptEnded) if event.step == "ok")
    assert (ended.outcome.value["note"], ended.outcome.diagnostic) == ("* and *", "rejected by ada: * and *")


def test_and_from_the_question():
    bench = AskingBench(timeout_ms=HOUR)
    bench.redact = scrubbing
    bench.drive()
    assert bench.told[0] == "waits for approval: Go *?"
