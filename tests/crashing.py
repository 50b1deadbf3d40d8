"""What crash tests compare: where a run ended, and that nothing that was done was done again."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from flowstone.plan.model import Plan
from flowstone.run.events import AttemptEnded, AttemptStarted, RunReopened, RunStatus, Status, StepClosed, StepOpened
from flowstone.testing.crashing_store import Crash, CrashingStore, When
from flowstone.testing.scripted_dispatcher import Script
from tests.driving import RUN, Bench

NEVER = 10**9


def result(bench: Bench) -> dict[str, Any]:
    """Where a run ended, without its history."""
    state = bench.state
    return {
        "status": state.status,
        "outputs": state.outputs,
        "steps": {step.id: (step.status, step.artifact) for step in state.order},
    }


def uninterrupted(plan: Plan, script: Script, params: dict[str, Any], store: Any) -> tuple[dict[str, Any], int]:
    """The result of a run that nothing disturbs, and how many appends it took."""
    bench = Bench(plan, script, params, store)
    counting = CrashingStore(bench.store, NEVER, When.BEFORE)
    bench.drive(store=counting)
    return result(bench), counting.appends


def crash(bench: Bench, nth: int, when: When) -> bool:
    """Drive until the `nth` append kills the driver; False when the run came to its end before."""
    dying = CrashingStore(bench.store, nth, when)
    if bench.state.status is not RunStatus.ACTIVE:
        return False
    try:
        bench.drive(store=dying)
    except Crash:
        return True
    return False


def finish(bench: Bench) -> None:
    """One more drive, if the run still needs one; nothing that the journal says is done is done again."""
    done = completed(bench)
    if bench.state.status is RunStatus.ACTIVE:
        bench.drive()
        again = [d for d in bench.dispatcher.asked if (d.step, d.unit, d.hash) in done]
        assert again == [], "a completed unit was dispatched again"
    check_journal(bench)


def completed(bench: Bench) -> set[tuple[str, str, str]]:
    """The units that the journal says are done, as (step, unit, hash)."""
    state = bench.state
    reuse = state.plan.policies.reuse_units
    return {
        (step.id, attempt.unit, attempt.hash)
        for step in state.order
        for attempt in step.attempts.values()
        if attempt.outcome is not None
        and attempt.outcome.ok
        and (reuse or step.status in (Status.SUCCEEDED, Status.SKIPPED))
    }


def check_journal(bench: Bench) -> None:
    """Sequence numbers without gaps; steps open after their needs; attempts end once."""
    entries = list(bench.store.read(RUN))
    assert [entry.seq for entry in entries] == list(range(1, len(entries) + 1))
    needs = {step.id: step.needs for step in bench.plan.steps}
    closed: dict[str, Status] = {}
    running: set[tuple[str, str, int]] = set()
    for entry in entries:
        match entry.event:
            case StepOpened(step=step):
                assert step not in closed, f"{step} was opened again"
                assert all(need in closed for need in needs[step]), f"{step} was opened before its needs had ended"
            case AttemptStarted(step=step, unit=unit, number=number):
                assert step not in closed
                running.add((step, unit, number))
            case AttemptEnded(step=step, unit=unit, number=number):
                running.remove((step, unit, number))
            case StepClosed(step=step, status=status):
                assert step not in closed, f"{step} was closed twice"
                closed[step] = status
            case RunReopened(steps=steps):
                for step in steps:
                    closed.pop(step, None)
            case _:
                pass


def crash_at_every_append(plan: Plan, script: Script, params: dict[str, Any], open_store: Callable[[], Any]) -> int:
    """Kill a driver before and after each append and go on; returns how many runs were killed."""
    expected, appends = uninterrupted(plan, script, params, open_store())
    killed = 0
    for nth in range(1, appends + 1):
        for when in When:
            bench = Bench(plan, script, params, open_store())
            assert crash(bench, nth, when)
            killed += 1
            finish(bench)
            assert result(bench) == expected, f"killed {when} append {nth}"
    return killed


__all__ = ["Crash", "When", "check_journal", "crash", "crash_at_every_append", "finish", "result", "uninterrupted"]
