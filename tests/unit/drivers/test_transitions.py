"""What a person may ask of a run in each of its statuses (akm facts 19.3; orun decision 17)."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from flowstone.drivers.transitions import abandoned, reopened, steps_to_reopen, unrouted
from flowstone.errors import CorruptJournal, IllegalTransition
from flowstone.run.events import RunAbandoned, RunReopened, RunStatus, StepClosed
from flowstone.stores.memory import MemoryStore
from flowstone.testing.plans import dag, route, solo, spine
from flowstone.testing.scripted_dispatcher import Script
from tests.driving import BAD, Bench, driven, ok


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


ROUTED = spine(solo("a"), route("r", "steps.a.output", {"x": "b"}, "c"), solo("b"), solo("c"))


def routed():
    return driven(ROUTED, Script().on("a", ok("x")), max_steps=2)


def test_a_route_without_its_selection_decides_again():
    state = routed().state
    assert unrouted(state) == ()
    state.steps["r"].detail = {"route": {"value": "x"}}
    assert unrouted(state) == ("r",)


def test_a_selection_that_no_route_declares_is_a_damaged_journal():
    bench = routed()
    state = bench.state
    state.steps["r"].detail = {"route": {"selected": "a"}}
    with pytest.raises(CorruptJournal, match="none of its declared targets"):
        unrouted(state)


class Damaged(MemoryStore):
    """Its journal has another selection than was recorded."""

    def read(self, run_id, after=0):
        for entry in super().read(run_id, after):
            event = entry.event
            if isinstance(event, StepClosed) and event.step == "r":
                yield replace(entry, event=replace(event, detail={"route": {"selected": "zzz"}}))
            else:
                yield entry


def test_a_drive_takes_up_no_run_with_such_a_selection():
    bench = Bench(ROUTED, Script().on("a", ok("x")), store=Damaged())
    bench.drive(max_steps=2)
    with pytest.raises(CorruptJournal, match="zzz"):
        bench.drive()


def test_an_abandoned_run_can_be_taken_up_again():
    from flowstone.run.fold import fold

    state = driven(spine(solo("a"), solo("b")), max_steps=1).state
    fold(state, abandoned(state, 5))
    assert (state.status, state.closed_at) == (RunStatus.ABANDONED, 5)
    assert reopened(state, 6) == RunReopened(6, ())
    with pytest.raises(IllegalTransition):
        abandoned(state, 7)
