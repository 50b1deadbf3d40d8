"""Transitions that a person asks for: reopen a stopped run, or give one up."""

from __future__ import annotations

import msgspec

from flowstone.drivers.journal import Journal
from flowstone.errors import CorruptJournal, IllegalTransition, InputError
from flowstone.plan.model import ChildRule, Join, OnFailure, Plan, Route
from flowstone.run.events import Event, RunAbandoned, RunReopened, RunStatus, Status, StepDecided
from flowstone.run.fold import fold
from flowstone.run.outcome import Reason
from flowstone.run.record import RunRecord
from flowstone.run.state import State, StepState


def reopened(state: State, now: int) -> RunReopened | None:
    """The event that takes a stopped run up again; None for an active one, which needs none.

    A completed run raises IllegalTransition.
    """
    if state.status is RunStatus.ACTIVE:
        spent = tuple(step.id for step in state.order if step.spent)
        return RunReopened(now, spent) if spent else None
    if state.status is RunStatus.SUCCEEDED:
        raise IllegalTransition(
            f"Workflow run {state.run_id} is already completed and cannot be resumed.", code="RUN_COMPLETED"
        )
    return RunReopened(now, steps_to_reopen(state))


class Again(msgspec.Struct, frozen=True):
    """A step to run afresh whatever became of it: with all that follows from it, or `only` itself."""

    step: str
    only: bool = False


def rerun(state: State, again: Again, now: int) -> tuple[Event, ...]:
    """The events that have a step run afresh, and with it what a plain resume would take up too.

    InputError for an unknown step; IllegalTransition where `only` names one whose needs have not ended.
    """
    step = _known_step(state, again.step)
    if state.status is RunStatus.ABANDONED:
        raise IllegalTransition(
            f"Workflow run {state.run_id} was given up; its steps are not run again.",
            code="RUN_NOT_ACTIVE",
            hint=f"Start a new run that takes over what it did: run FILE --reuse {state.run_id}",
        )
    if again.only:
        good = {Status.SUCCEEDED, Status.SKIPPED} | ({Status.FAILED} if step.plan.join is Join.ALL_ENDED else set())
        waits = [need for need in step.plan.needs if state.steps[need].status not in good]
        if waits:
            raise IllegalTransition(
                f'Step "{step.id}" cannot run alone: it waits for {", ".join(waits)}, which has not succeeded.',
                code="STEP_NOT_READY",
                hint=f"Run it with all that comes before it: resume --from {waits[0]}",
            )
        return (RunReopened(now, (step.id,), fresh=True),)
    below = _descendants(state, step)
    stopped = tuple(name for name in steps_to_reopen(state) if name not in below)
    return tuple(RunReopened(now, names, fresh=fresh) for names, fresh in ((stopped, False), (below, True)) if names)


def _descendants(state: State, step: StepState) -> tuple[str, ...]:
    """A step and all that waits for it, in file order."""
    found, waiting = {step.place}, [step.place]
    while waiting:
        for place in state.dependents[state.order[waiting.pop()].id]:
            if place not in found:
                found.add(place)
                waiting.append(place)
    return tuple(state.order[place].id for place in sorted(found))


def _known_step(state: State, step_id: str) -> StepState:
    step = state.steps.get(step_id)
    if step is None:
        raise InputError(f'The run has no step "{step_id}".', hint=f"Its steps are: {', '.join(state.steps)}.")
    return step


def steps_to_reopen(state: State) -> tuple[str, ...]:
    """The steps that a resume makes pending again: those that failed, are held or were blocked.

    A plan that halts on failure reopens the step that stopped it; later steps are untouched.
    """
    stopped = (Status.FAILED, Status.HELD, Status.UPSTREAM_FAILED, Status.CANCELLED, Status.OPEN)
    found = tuple(step.id for step in state.order if step.status in stopped)
    return found[:1] if state.plan.policies.on_failure is OnFailure.HALT else found


def unrouted(state: State) -> tuple[str, ...]:
    """The routes of an active run whose selection is not on record: they decide again (akm facts 16).

    CorruptJournal for one that selected what it does not declare.
    """
    again = []
    for step in state.order:
        route = step.plan.action
        if not isinstance(route, Route) or step.status is not Status.SUCCEEDED:
            continue
        detail = step.detail.get("route") if isinstance(step.detail, dict) else None
        selected = detail.get("selected") if isinstance(detail, dict) else None
        if selected is None:
            again.append(step.id)
        elif selected not in (route.default, *(branch.step for branch in route.branches)):
            raise CorruptJournal(
                f'run {state.run_id}: step "{step.id}" is on record to have selected {selected!r}, '
                "which is none of its declared targets",
                hint="The journal is damaged: restore it from a backup, or start a new run.",
            )
    return tuple(again)


def abandoned(state: State, now: int) -> RunAbandoned:
    """The event that gives a run up for good; one that has ended raises IllegalTransition."""
    if state.status is RunStatus.SUCCEEDED:
        raise IllegalTransition(
            f"Workflow run {state.run_id} is already completed and cannot be abandoned.", code="RUN_COMPLETED"
        )
    if state.status in (RunStatus.FAILED, RunStatus.ABANDONED):
        raise IllegalTransition(f"Workflow run {state.run_id} has already failed.", code="RUN_NOT_ACTIVE")
    return RunAbandoned(now)


def decided(state: State, step_id: str, verdict: StepDecided) -> tuple[Event, ...]:
    """The events by which a person decides a step that its gate rejected or its judge left without a verdict."""
    step = _known_step(state, step_id)
    if not step.spent and (step.status is not Status.HELD or step.reason is Reason.CHILD_BLOCKED):
        word = "running" if step.status is Status.OPEN else step.status
        raise IllegalTransition(
            f'Step "{step_id}" waits for no decision: it is {word}.',
            code="STEP_NOT_DECIDABLE",
            hint="A step can be decided when its gate rejected it for good, or its judge gave no verdict.",
        )
    return verdict, RunReopened(verdict.at, (step_id,))


def refuse_child(record: RunRecord, plan: Plan) -> None:
    """Where the plan says so, only a parent drives and ends its children: it alone has what they were given."""
    if record.parent_run is not None and plan.policies.children is ChildRule.WITH_PARENT:
        raise IllegalTransition(
            f"Workflow run {record.id} is nested in run {record.parent_run}, which goes on with it.",
            hint=f"Give the verb the outer run: {record.parent_run}",
        )


def record(state: State, journal: Journal, *events: Event) -> None:
    """Fold events in and make them durable together."""
    for event in events:
        fold(state, event)
    journal.append(events, state)
