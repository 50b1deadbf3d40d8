"""What starts beside the sync of what it follows, and what waits until the disk has it."""

from __future__ import annotations

import pytest

from flowstone.run.events import AttemptStarted, StepClosed
from flowstone.testing.crashing_store import Crash
from flowstone.testing.plans import cel, dag, fan_out, ref, retry, route, solo, spine
from flowstone.testing.scripted_dispatcher import Script
from tests.driving import BAD, RUN, Bench, ok


class Dying(Bench):
    """A bench whose machine dies in an append, once what may start beside its sync was handed out."""

    def __init__(self, *given) -> None:
        super().__init__(*given)
        self.begun: list[str] = []

    def die_at(self, step: str) -> None:
        """Lose the append in which `step` closes; keep what was handed out before that was durable."""
        real = self.store.append

        def append(run, seq, events, summary, meanwhile=None):
            if not any(isinstance(event, StepClosed) and event.step == step for event in events):
                return real(run, seq, events, summary, meanwhile)
            if meanwhile is not None:
                (dispatches,) = meanwhile.args
                self.begun += [dispatch.step for dispatch in dispatches]
            raise Crash("the power is gone")

        self.store.append = append
        with pytest.raises(Crash):
            self.drive()
        self.store.append = real


def begun_at_the_end_of(step: str, plan, script: Script | None = None, params=None) -> list[str]:
    bench = Dying(plan, script, params)
    bench.die_at(step)
    bench.drive()
    return bench.begun


def test_what_merely_comes_later_starts_beside_the_sync():
    assert begun_at_the_end_of("a", spine(solo("a"), solo("b"))) == ["b"]
    assert begun_at_the_end_of("a", dag(solo("a"), solo("b", needs=("a",)))) == ["b"]


def test_what_uses_the_artifact_waits_for_the_disk():
    assert begun_at_the_end_of("a", spine(solo("a"), solo("b", inputs=(ref("steps.a.output"),)))) == []


def test_an_artifact_of_an_earlier_step_is_on_the_disk_by_then():
    plan = spine(solo("a"), solo("b"), solo("c", inputs=(ref("steps.a.output"),)))
    assert begun_at_the_end_of("b", plan) == ["c"]


def test_a_fan_out_over_the_artifact_waits():
    plan = spine(solo("a"), fan_out("m", "steps.a.output", width=2))
    assert begun_at_the_end_of("a", plan, Script().on("a", ok([1, 2]))) == []


def test_a_condition_on_the_result_waits():
    plan = dag(solo("a"), solo("b", needs=("a",), when=cel("steps.a.exitCode == 0")))
    assert begun_at_the_end_of("a", plan, Script().on("a", ok(exit_code=0))) == []


def test_what_a_route_selects_by_the_artifact_waits():
    plan = spine(solo("a"), route("r", "steps.a.output", {"x": "b"}, "c"), solo("b"), solo("c"))
    assert begun_at_the_end_of("a", plan, Script().on("a", ok("x"))) == []


def test_a_repetition_waits():
    bench = Dying(spine(solo("a", repeat=retry(1)), solo("b")), Script().series("a", [BAD, ok()]))
    waits = []
    real = bench.store.append

    def append(run, seq, events, summary, meanwhile=None):
        if any(isinstance(event, AttemptStarted) and event.number == 1 for event in events):
            waits.append(meanwhile is None)
        return real(run, seq, events, summary, meanwhile)

    bench.store.append = append
    bench.drive()
    assert waits == [True]
    assert len(list(bench.store.read(RUN))) > 0
