"""What may start before the events of its decision are durable, and what must wait."""

from __future__ import annotations

from typing import Any

from flowstone.plan.model import Plan
from flowstone.run.events import AttemptEnded, DriverStarted
from flowstone.run.fold import fold
from flowstone.run.outcome import Outcome, Reason, failed
from flowstone.run.state import State
from flowstone.scheduler.commands import Decision, Facts
from flowstone.scheduler.decide import decide
from flowstone.testing.plans import fan_out, retry, solo, spine


class Run:
    def __init__(self, plan: Plan, **params: Any) -> None:
        self.state = State("r", plan)
        self.facts = Facts(params)
        fold(self.state, DriverStarted(1, "d"))

    def decide(self) -> Decision:
        return decide(self.state, self.facts, 5)

    def end(self, dispatch: Any, outcome: Outcome) -> Decision:
        event = AttemptEnded(dispatch.step, dispatch.unit, 5, outcome, dispatch.number, dispatch.index)
        fold(self.state, event)
        return self.decide()


def indexes(dispatches: list[Any]) -> list[int]:
    return [dispatch.index for dispatch in dispatches]


def test_the_first_units_wait_for_the_opening_of_their_step() -> None:
    first = Run(spine(fan_out("m", "params.l", width=2)), l=[1, 2, 3]).decide()
    assert (indexes(first.ahead), indexes(first.behind)) == ([], [0, 1])


def test_the_next_unit_of_an_open_fan_out_rests_on_nothing_new() -> None:
    run = Run(spine(fan_out("m", "params.l", width=2)), l=[1, 2, 3])
    following = run.end(run.decide().behind[0], Outcome())
    assert (indexes(following.ahead), indexes(following.behind)) == ([2], [])


def test_a_later_step_waits_for_the_outcome_that_it_follows() -> None:
    run = Run(spine(solo("a"), solo("b")))
    following = run.end(run.decide().behind[0], Outcome())
    assert following.ahead == []
    assert [dispatch.step for dispatch in following.behind] == ["b"]


def test_a_retry_waits_for_the_failure_that_it_follows() -> None:
    run = Run(spine(fan_out("m", "params.l", width=1, repeat=retry(1))), l=[1, 2])
    following = run.end(run.decide().behind[0], failed(Reason.NON_ZERO_EXIT, "exited 1"))
    assert following.ahead == []
    assert [dispatch.number for dispatch in following.behind] == [1]
