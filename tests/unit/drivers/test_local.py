"""The local driver: commits before it acts, tells after it committed, and ends what it started."""

from __future__ import annotations

import os
import signal

import pytest

from flowstone.drivers.drive import _Drive
from flowstone.drivers.local import Halt
from flowstone.errors import DispatchSetupError, LeaseHeld, StoreError
from flowstone.run.events import AttemptEnded, AttemptStarted, DriverStarted, RunInterrupted, RunStatus
from flowstone.run.outcome import Reason
from flowstone.testing.plans import dag, fan_out, retry, solo, spine
from flowstone.testing.scripted_dispatcher import Script
from tests.driving import BAD, RUN, Bench, driven, ok


def test_an_attempt_is_in_the_journal_before_it_is_performed():
    bench = Bench(spine(solo("a")))
    seen = []
    bench.script.on("a", lambda dispatch: seen.append([type(e.event) for e in bench.store.read(RUN)]) or ok())
    bench.drive()
    assert seen[0][-1] is AttemptStarted


def test_an_outcome_is_in_the_journal_before_a_later_step_uses_it():
    bench = Bench(spine(solo("a"), solo("b")))
    seen = []
    bench.script.on("b", lambda dispatch: seen.append([type(e.event) for e in bench.store.read(RUN)]) or ok())
    bench.drive()
    assert AttemptEnded in seen[0]


def test_whoever_watches_is_told_every_event_once_in_order():
    bench = driven(spine(solo("a"), solo("b")))
    assert bench.recorded == [entry.event for entry in bench.store.read(RUN)]


def test_what_ends_together_is_one_commit():
    bench = Bench(spine(fan_out("m", "params.l", width=10)), params={"l": list(range(10))})
    appends = []
    real = bench.store.append
    bench.store.append = lambda run, seq, events, summary, meanwhile=None: (
        appends.append(len(events)) or real(run, seq, events, summary, meanwhile)
    )
    bench.drive()
    assert len(appends) == 2


def test_a_dispatcher_that_raises_breaks_the_drive_off_and_loses_nothing_else():
    def broken(dispatch):
        raise DispatchSetupError("no guard")

    script = Script().on("m", broken, unit=1).on("m", ok("v"))
    bench = Bench(spine(fan_out("m", "params.l", width=3)), script, {"l": [0, 1, 2]})
    with pytest.raises(DispatchSetupError):
        bench.drive()
    assert sorted(event.index for event in bench.events(AttemptEnded)) == [0, 2]
    bench.script.on("m", ok("now"), unit=1)
    bench.drive()
    assert bench.dispatcher.calls("m") == [(1, 0)]
    assert bench.artifact("m") == ["v", "now", "v"]
    assert bench.state.dispatched == 3


def test_a_store_that_fails_ends_the_drive_and_what_runs():
    bench = Bench(dag(solo("a"), solo("b")), Script().on("a", ok(), delay_ms=10_000).on("b", ok(), delay_ms=10))
    real = bench.store.append

    def append(run, seq, events, summary, meanwhile=None):
        if any(isinstance(event, AttemptEnded) for event in events):
            raise StoreError("disk full")
        return real(run, seq, events, summary, meanwhile)

    bench.store.append = append
    with pytest.raises(StoreError, match="disk full"):
        bench.drive()
    assert [dispatch.step for dispatch in bench.dispatcher.cancelled] == ["a"]
    assert bench.dispatcher.closed == 1
    bench.store.append = real
    bench.script.on("a", ok())
    bench.drive()
    assert bench.state.status is RunStatus.SUCCEEDED


def test_the_lease_is_given_back_whatever_happens():
    bench = driven(spine(solo("a")), Script().on("a", BAD))
    bench.store.lease(RUN, "me").release()


def test_a_run_that_is_held_is_not_touched():
    bench = Bench(spine(solo("a")))
    lease = bench.store.lease(RUN, "somebody")
    with pytest.raises(LeaseHeld, match="somebody"):
        bench.drive()
    assert list(bench.store.read(RUN)) == []
    lease.release()


@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM", "SIGHUP"])
def test_a_signal_aborts_what_runs_and_leaves_the_run_to_be_taken_up(name):
    def interrupt(dispatch):
        os.kill(os.getpid(), getattr(signal, name))
        return ok("a")

    script = Script().on("m", interrupt, unit=0, delay_ms=5).on("m", ok(), unit=1, delay_ms=60_000)
    bench = Bench(spine(fan_out("m", "params.l", width=2)), script, {"l": [0, 1, 2]})
    end = bench.drive().end
    assert (end.halt, end.cause) == (Halt.INTERRUPTED, f"signal:{name}")
    assert isinstance(list(bench.store.read(RUN))[-1].event, RunInterrupted)
    aborted = [event.outcome.reason for event in bench.events(AttemptEnded)]
    assert Reason.ABORTED in aborted
    assert bench.state.status is RunStatus.ACTIVE
    bench.script.on("m", ok("a"), unit=0).on("m", ok("b"), unit=1)
    bench.drive()
    assert bench.artifact("m") == ["a", "b", "m:2"]
    assert (0, 0) not in bench.dispatcher.calls("m")


def test_a_run_that_is_taken_up_has_two_drivers_in_its_journal():
    bench = driven(spine(solo("a"), solo("b")), max_steps=1)
    bench.drive()
    assert len(bench.events(DriverStarted)) == 2


def test_a_retry_that_waits_does_not_keep_an_interrupted_drive():
    script = Script().on("a", BAD).on("b", ok(), delay_ms=50)
    bench = Bench(dag(solo("a", repeat=retry(5, base_ms=60_000)), solo("b")), script)
    end = bench.drive(timeout_ms=1_000).end
    assert end.cause == "timeout"
    assert bench.state.status is RunStatus.ACTIVE


@pytest.fixture
def stopping(monkeypatch):
    """A function that makes an answer: when it is given, a stop is asked for in the same moment."""
    drives = []
    run = _Drive.run

    def remembered(self, first, lease):
        drives.append(self)
        return run(self, first, lease)

    monkeypatch.setattr(_Drive, "run", remembered)

    def answering(outcome):
        return lambda dispatch: drives[-1]._stop("signal:SIGINT") or outcome

    return answering


def test_a_step_that_was_done_when_the_stop_came_is_not_run_again(stopping):
    script = Script().on("a", stopping(ok("done")), delay_ms=5).on("b", ok(), delay_ms=60_000)
    bench = Bench(dag(solo("a"), solo("b"), solo("c", needs=("a",))), script)
    assert bench.drive().end.cause == "signal:SIGINT"
    assert bench.statuses() == "a=succeeded b=open c=pending"
    bench.script.on("b", ok())
    bench.drive()
    assert bench.dispatcher.steps() == ["b", "c"]
    assert bench.state.status is RunStatus.SUCCEEDED


def test_a_stop_that_comes_with_the_end_of_the_run_interrupts_nothing(stopping):
    bench = Bench(dag(solo("a")))
    bench.script.on("a", stopping(ok()))
    bench.drive()
    assert bench.reports[-1].end.halt is Halt.ENDED
    assert bench.state.status is RunStatus.SUCCEEDED
    assert bench.events(RunInterrupted) == []


def test_a_failure_that_comes_with_the_stop_is_not_retried(stopping):
    bench = Bench(spine(solo("a")))
    bench.script.on("a", stopping(BAD))
    bench.drive(max_retries=3)
    assert bench.state.status is RunStatus.FAILED
    assert len(bench.asked()) == 1
