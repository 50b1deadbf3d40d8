"""What a person may ask of a run in each of its statuses (akm facts 19.3; orun decision 17)."""

from __future__ import annotations

import pytest

from flowstone.drivers.transitions import abandoned, reopened, steps_to_reopen
from flowstone.errors import IllegalTransition
from flowstone.run.events import RunAbandoned, RunReopened, RunStatus
from flowstone.testing.plans import dag, solo, spine
from flowstone.testing.scripted_dispatcher import Script
from tests.driving import BAD, driven


def failed_spine():
    return driven(spine(solo("a"), solo("b"), solo("c")), Script().on("b", BAD)).state


def test_an_active_run_needs_no_reopening():
    bench = driven(spine(solo("a"), solo("b")), max_steps=1)
    assert reopened(bench.state, 5) is None
    assert abandoned(bench.state, 5) == RunAbandoned(5)


def test_a_failed_spine_reopens_the_step_that_stopped_it():
    assert reopened(failed_spine(), 5) == RunReopened(5, ("b",))


def test_a_failed_dag_reopens_all_that_did_not_succeed():
    plan = dag(solo("a"), solo("b", needs=("a",)), solo("c"), solo("d"))
    state = driven(plan, Script().on("a", BAD).on("d", BAD)).state
    assert steps_to_reopen(state) == ("a", "b", "d")


def test_a_completed_run_refuses_both():
    state = driven(spine(solo("a"))).state
    for ask in (reopened, abandoned):
        with pytest.raises(IllegalTransition) as caught:
            ask(state, 5)
        assert caught.value.code == "RUN_COMPLETED"


def test_a_failed_run_cannot_be_abandoned_again():
    with pytest.raises(IllegalTransition, match="already failed") as caught:
        abandoned(failed_spine(), 5)
    assert caught.value.code == "RUN_NOT_ACTIVE"


def test_an_abandoned_run_can_be_taken_up_again():
    from flowstone.run.fold import fold

    state = driven(spine(solo("a"), solo("b")), max_steps=1).state
    fold(state, abandoned(state, 5))
    assert (state.status, state.closed_at) == (RunStatus.ABANDONED, 5)
    assert reopened(state, 6) == RunReopened(6, ())
    with pytest.raises(IllegalTransition):
        abandoned(state, 7)
