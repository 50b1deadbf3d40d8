"""Seeds a new run with what an earlier one of an older source did: which steps stand, and the events that say so.

A step stands if its definition, the params and everything before it are the same. Of the others the
finished units are taken along, where units are known by their input hash: the scheduler then reuses
those whose input is still the same.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum

import msgspec
from msgspec.structs import replace

from flowstone.diagnostics import Place
from flowstone.plan.model import Plan, Step
from flowstone.plan.units import ApprovalSpec
from flowstone.run.events import AttemptEnded, AttemptStarted, Event, Status, StepClosed, StepOpened
from flowstone.run.state import Attempt, State, StepState
from flowstone.values import canonical_bytes


class Fate(StrEnum):
    """What a new run does with a step."""

    REUSED = "reused"
    AGAIN = "run again"
    NEW = "new"


class Seed(msgspec.Struct, frozen=True):
    """What becomes of one step, and why."""

    step: str
    fate: Fate
    why: str = ""


def seeds_of(old: State, plan: Plan, *, changed: str | None = None) -> tuple[Seed, ...]:
    """The fate of each step of `plan`, in file order; `changed` says what besides the steps is another."""
    fates: dict[str, Fate] = {}
    found = []
    for step in plan.steps:
        seed = _seed(old, step, fates, changed)
        fates[step.id] = seed.fate
        found.append(seed)
    return tuple(found)


def seeding_events(old: State, plan: Plan, seeds: tuple[Seed, ...], now: int) -> list[Event]:
    """The events with which the journal of the new run begins, at the time `now`."""
    events: list[Event] = []
    for seed in seeds:
        before = old.steps.get(seed.step)
        if before is None or seed.fate is Fate.NEW:
            continue
        if seed.fate is Fate.REUSED:
            events += _standing(before, old.run_id, now)
        elif plan.policies.reuse_units:
            events += _units(before, now)
    return events


def _seed(old: State, step: Step, fates: dict[str, Fate], changed: str | None) -> Seed:
    before = old.steps.get(step.id)
    if before is None:
        return Seed(step.id, Fate.NEW)
    if before.status not in (Status.SUCCEEDED, Status.SKIPPED):
        return Seed(step.id, Fate.AGAIN, _ended_as(before.status))
    if changed is not None:
        return Seed(step.id, Fate.AGAIN, changed)
    if step.unit is not None and isinstance(step.unit.spec, ApprovalSpec):
        return Seed(step.id, Fate.AGAIN, "a person decides for one run only")
    if not _same(replace(before.plan, place=Place()), replace(step, place=Place())):
        return Seed(step.id, Fate.AGAIN, "its definition changed")
    after = next((need for need in step.needs if fates.get(need) is not Fate.REUSED), None)
    return Seed(step.id, Fate.REUSED) if after is None else Seed(step.id, Fate.AGAIN, f"it follows {after}")


def _same(before: Step, now: Step) -> bool:
    """Whether two steps say the same; a nested plan that was stored has lists where a fresh one has tuples."""
    return before == now or canonical_bytes(msgspec.to_builtins(before)) == canonical_bytes(msgspec.to_builtins(now))


def _ended_as(status: Status) -> str:
    match status:
        case Status.FAILED | Status.UPSTREAM_FAILED:
            return "it failed"
        case Status.HELD:
            return "it was held"
        case _:
            return "it did not end"


def _standing(before: StepState, run_id: str, now: int) -> Iterator[Event]:
    if before.status is Status.SUCCEEDED:
        yield StepOpened(before.id, now, before.count)
        for attempt in before.final_attempts():
            yield from _attempt(before, attempt, now)
    detail = {**before.detail, "reusedFrom": run_id} if isinstance(before.detail, dict) else {"reusedFrom": run_id}
    yield StepClosed(
        before.id, now, before.status, before.artifact, reason=before.reason, summary=before.summary, detail=detail
    )


def _units(before: StepState, now: int) -> Iterator[Event]:
    """The units that succeeded, in an execution that looks cut short; the next drive begins it anew."""
    good = [a for a in before.final_attempts() if a.outcome is not None and a.outcome.ok]
    if good:
        yield StepOpened(before.id, now, max(before.count, 1 + max(attempt.index for attempt in good)))
    for attempt in good:
        yield from _attempt(before, attempt, now)


def _attempt(before: StepState, attempt: Attempt, now: int) -> Iterator[Event]:
    """What the attempt used up counts for the run that made it, not for this one."""
    yield AttemptStarted(before.id, attempt.unit, now, attempt.hash, attempt.number, attempt.index)
    if attempt.outcome is not None:
        outcome = replace(attempt.outcome, tokens=None, tokens_in=None, tokens_out=None)
        yield AttemptEnded(before.id, attempt.unit, now, outcome, attempt.number, attempt.index)
