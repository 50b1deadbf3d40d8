"""Events and the state that they give."""

from __future__ import annotations

from flowstone.run.events import (
    AttemptEnded,
    AttemptStarted,
    DriverStarted,
    Recorded,
    RunAbandoned,
    RunClosed,
    RunInterrupted,
    RunReopened,
    RunStatus,
    Status,
    StepClosed,
    StepOpened,
)
from flowstone.run.fold import fold, replay
from flowstone.run.outcome import Outcome, Reason, failed
from flowstone.run.state import Agenda, State
from flowstone.testing.plans import dag, fan_out, solo, spine


def state_of(plan, *events):
    return replay("r", plan, [Recorded(seq, event) for seq, event in enumerate(events, 1)])


def begun(step, at, number=0, index=0):
    return AttemptStarted(step, f"{step}:{index}", at, "h", number, index)


def ended(step, at, outcome=None, number=0, index=0):
    return AttemptEnded(step, f"{step}:{index}", at, outcome or Outcome(value="v", tokens=3), number, index)


PLAN = spine(solo("a"), solo("b"))


def test_a_run_from_its_start_to_its_end():
    state = state_of(
        PLAN,
        DriverStarted(1, "pid 1"),
        StepOpened("a", 2),
        begun("a", 3),
        ended("a", 4),
        StepClosed("a", 4, Status.SUCCEEDED, artifact="v"),
    )
    assert (state.seq, state.started_at, state.updated_at) == (5, 1, 4)
    assert (state.running, state.open_steps, state.unended, state.dispatched, state.tokens) == (0, 0, 1, 1, 3)
    assert state.current_step == "b"
    assert state.steps["a"].artifact == "v"
    fold(state, StepClosed("b", 5, Status.SUCCEEDED))
    fold(state, RunClosed(6, RunStatus.SUCCEEDED, outputs={"x": 1}))
    assert (state.status, state.closed_at, state.current_step) == (RunStatus.SUCCEEDED, 6, None)
    assert state.summary().outputs == {"x": 1}


def test_what_a_dead_driver_left_is_abandoned_and_does_not_count():
    plan = spine(fan_out("m", "params.l"))
    state = state_of(
        plan,
        DriverStarted(1, "pid 1"),
        StepOpened("m", 1, count=3),
        begun("m", 2, index=0),
        begun("m", 2, index=1),
        ended("m", 3, index=0),
        DriverStarted(9, "pid 2"),
    )
    step = state.steps["m"]
    assert step.status is Status.PENDING
    assert (state.dispatched, state.running, state.open_steps) == (1, 0, 0)
    assert step.attempts["m:0", 0].outcome.ok
    assert step.attempts["m:1", 0].lost
    assert step.attempts["m:1", 0].ended_at == 9
    assert state.running_attempts() == []


def test_an_attempt_that_begins_again_counts_its_tries():
    events = (DriverStarted(1, "x"), StepOpened("a", 1), begun("a", 2))
    assert state_of(PLAN, *events, *events).steps["a"].attempts["a:0", 0].tries == 2


def test_a_stopped_step_is_pending_again_after_a_reopening():
    closed = StepClosed("a", 3, Status.FAILED, reason=Reason.TIMEOUT, error="late")
    state = state_of(PLAN, StepOpened("a", 1), begun("a", 1), ended("a", 2, failed(Reason.TIMEOUT, "late")), closed)
    assert (state.stopped, state.unended) == (1, 1)
    fold(state, RunClosed(4, RunStatus.FAILED, error="late"))
    assert (state.closed_at, state.error) == (None, "late")
    fold(state, RunReopened(5, ("a",)))
    step = state.steps["a"]
    assert (step.status, step.error, step.reason, step.units) == (Status.PENDING, None, None, {})
    assert (state.status, state.error, state.stopped, state.unended) == (RunStatus.ACTIVE, None, 0, 2)
    assert len(step.attempts) == 1


def test_a_run_given_up_while_its_driver_was_dead_can_be_reopened():
    state = state_of(dag(solo("a")), DriverStarted(1, "x"), StepOpened("a", 1), begun("a", 2), RunAbandoned(3))
    assert (state.status, state.closed_at) == (RunStatus.ABANDONED, 3)
    fold(state, RunReopened(4, ("a",)))
    assert (state.dispatched, state.running, state.open_steps) == (0, 0, 0)
    assert state.steps["a"].attempts["a:0", 0].lost
    fold(state, DriverStarted(5, "y"))
    assert (state.dispatched, state.running) == (0, 0)


def test_an_interruption_is_kept_until_the_next_driver():
    state = state_of(PLAN, DriverStarted(1, "x"), RunInterrupted(2, "signal:SIGINT"))
    assert state.interrupted == "signal:SIGINT"
    fold(state, DriverStarted(3, "y"))
    assert state.interrupted is None


def test_an_outcome_that_comes_after_its_execution_is_kept_and_no_more():
    state = state_of(PLAN, StepOpened("a", 1), begun("a", 1), DriverStarted(2, "x"), ended("a", 3))
    assert state.steps["a"].attempts["a:0", 0].outcome.ok
    assert (state.running, state.steps["a"].running) == (0, 0)


def test_an_agenda_gives_the_first_of_the_file_and_each_once():
    agenda = Agenda([3, 1])
    agenda.add(2)
    agenda.add(3)
    assert [agenda.take() for _ in range(4)] == [1, 2, 3, None]
    agenda.add(3)
    assert len(agenda) == 1
    agenda.clear()
    assert agenda.take() is None


def test_a_fresh_state_looks_at_every_step():
    state = State("r", PLAN)
    assert [state.next_awake().id for _ in range(2)] == ["a", "b"]
    assert state.next_awake() is None
