"""Why a unit ran, was reused, failed, was skipped or never started: facts from plan and journal."""

from __future__ import annotations

from collections.abc import Iterable
from typing import assert_never

import msgspec

from flowstone.errors import UsageError
from flowstone.plan.model import OnFailure
from flowstone.run.events import (
    AttemptEnded,
    AttemptStarted,
    DriverStarted,
    Event,
    RunReopened,
    RunStatus,
    Status,
    StepClosed,
    StepOpened,
)
from flowstone.run.outcome import Outcome
from flowstone.run.state import State, StepState
from flowstone.values import canonical_json, sha256_hex
from flowstone.views.overview import skip_note
from flowstone.views.text import notes_of, one_line, short_unit, spell_count, spell_ms
from flowstone.views.words import RUNNING, plain_word


class Why(msgspec.Struct, frozen=True):
    """The answer: what became of the unit, in a word, and the facts behind it, the first cause first."""

    step: str
    unit: str | None
    verdict: str
    facts: tuple[str, ...]


class Begun(msgspec.Struct):
    """An attempt of the unit in the journal; `seen` are digests of the artifacts that it could read."""

    opening: int
    number: int
    at: int
    hash: str
    seen: dict[str, str]
    ended_at: int | None = None
    outcome: Outcome | None = None


class Story(msgspec.Struct):
    """What the journal tells of one unit, in order; `openings` counts its step's executions."""

    begun: list[Begun] = []
    openings: int = 0
    reopened: int = 0
    drivers: int = 0


def why(state: State, events: Iterable[Event], name: str) -> Why:
    """Explain a step or a unit. `name` is a step's id, a unit's id or the start of one, or `step[3]`.

    UsageError when nothing or more than one thing has that name.
    """
    step, unit = _find(state, name)
    if unit is None:
        return Why(step.id, None, *_without_units(state, step))
    story = _story(step, events, unit)
    return Why(step.id, unit, *_of_unit(state, step, unit, story))


def why_lines(answer: Why) -> list[str]:
    """The answer in lines of text."""
    return [
        f"{short_unit(answer.unit or answer.step)}: {answer.verdict}",
        *(f"  {short_unit(f)}" for f in answer.facts),
    ]


def _find(state: State, name: str) -> tuple[StepState, str | None]:
    if name in state.steps:
        step = state.steps[name]
        units = _units(step)
        return step, units[0] if len(units) == 1 else None
    step_id, bracket, index = name.rstrip("]").rpartition("[")
    if bracket and step_id in state.steps and index.isdigit():
        step = state.steps[step_id]
        found = [a.unit for a in step.final_attempts() if a.index == int(index)]
        if found:
            return step, found[0]
        raise UsageError(f'Step "{step_id}" has started no unit {index}.', hint=_range_hint(step))
    every = [(step, unit) for step in state.order for unit in _units(step)]
    matches = [(step, unit) for step, unit in every if name in (unit, short_unit(unit))]
    matches = matches or [(step, unit) for step, unit in every if unit.startswith(name)]
    if len(matches) == 1:
        return matches[0]
    if matches:
        shown = ", ".join(short_unit(unit) for _, unit in matches[:5])
        raise UsageError(f'"{name}" is the start of {spell_count(len(matches), "unit")}: {shown}')
    raise UsageError(
        f'The run has no step and no unit "{name}".', hint=f"Its steps: {', '.join(list(state.steps)[:20])}"
    )


def _range_hint(step: StepState) -> str:
    """Which indexes a step's units have; they count from 0."""
    if step.opened_at is None:
        return f"The step has not begun; `flowstone why RUN {step.id}` tells why."
    if step.count == 0:
        return "Its list was empty: it has no units."
    kept = f"Its units are {step.id}[0]" + (f" to {step.id}[{step.count - 1}]" if step.count > 1 else "")
    return f"{kept}; an index counts from 0."


def _units(step: StepState) -> list[str]:
    return list(dict.fromkeys(attempt.unit for attempt in step.attempts.values()))


def _without_units(state: State, step: StepState) -> tuple[str, tuple[str, ...]]:
    """A step that started no unit, or so many that one must be named."""
    match step.status:
        case Status.SKIPPED:
            return "skipped", (skip_note(step) or "the step was skipped",)
        case Status.UPSTREAM_FAILED:
            return step.status.value, _failed_upstream(state, step)
        case Status.PENDING:
            return "pending", _pending(state, step)
        case Status.FAILED | Status.HELD | Status.CANCELLED | Status.OPEN | Status.SUCCEEDED:
            facts = [step.error or "", step.summary if step.summary != step.error else ""]
            units = len(_units(step))
            if units:
                facts.append(f'{spell_count(units, "unit")} ran; ask for one of them, as in "{step.id}[0]".')
            return plain_word(step.status), tuple(one_line(fact, 400) for fact in facts if fact)
        case _:
            assert_never(step.status)


def _failed_upstream(state: State, step: StepState) -> tuple[str, ...]:
    """The chain of needs from a blocked step to the one that failed."""
    facts = []
    at: StepState | None = step
    while at is not None:
        bad = [state.steps[need] for need in at.plan.needs]
        failed = next((need for need in bad if need.status is Status.FAILED), None)
        if failed is not None:
            cause = f": {one_line(failed.error)}" if failed.error else ""
            facts.append(f'step "{at.id}" needs "{failed.id}", which failed{cause}')
            break
        blocked = next((need for need in bad if need.status is Status.UPSTREAM_FAILED), None)
        if blocked is not None:
            facts.append(f'step "{at.id}" needs "{blocked.id}", which did not run either')
        at = blocked
    return tuple(facts)


def _pending(state: State, step: StepState) -> tuple[str, ...]:
    waiting = [n for n in step.plan.needs if state.steps[n].status not in (Status.SUCCEEDED, Status.SKIPPED)]
    facts = [f'waits for step "{need}", which is {plain_word(state.steps[need].status)}' for need in waiting]
    stopped = next((s for s in state.order if s.status in (Status.FAILED, Status.HELD)), None)
    if stopped is not None and state.plan.policies.on_failure is OnFailure.HALT:
        facts.append(f'the run admits nothing more, since step "{stopped.id}" {_past(stopped.status)}')
    if state.status is RunStatus.ABANDONED:
        facts.append("the run was abandoned")
    elif state.interrupted is not None:
        facts.append(f"the run was interrupted ({state.interrupted}) and can be resumed")
    return tuple(facts or ["all that it waits for has ended; it starts as soon as a driver runs it"])


def _past(status: Status) -> str:
    return "failed" if status is Status.FAILED else "is held"


def _story(step: StepState, events: Iterable[Event], unit: str) -> Story:
    """Read the journal once; only what concerns the unit is kept."""
    story = Story()
    sources = {reference.name for reference in step.plan.inputs if reference.root == "steps"}
    seen: dict[str, str] = {}
    for event in events:
        match event:
            case StepClosed() if event.step in sources:
                seen = {**seen, event.step: event.blob or sha256_hex(canonical_json(event.artifact))}
            case StepOpened() if event.step == step.id:
                story.openings += 1
            case AttemptStarted() if event.unit == unit:
                story.begun.append(Begun(story.openings, event.number, event.at, event.hash, seen))
            case AttemptEnded() if event.unit == unit and story.begun:
                story.begun[-1].ended_at, story.begun[-1].outcome = event.at, event.outcome
            case RunReopened() if step.id in event.steps:
                story.reopened += 1
            case DriverStarted():
                story.drivers += 1
            case _:
                pass
    return story


def _of_unit(state: State, step: StepState, unit: str, story: Story) -> tuple[str, tuple[str, ...]]:
    last = story.begun[-1]
    facts: list[str] = []
    if last.opening < story.openings:
        verdict = "reused"
        facts.append(
            f"it succeeded in the step's execution {last.opening} with the same input hash, "
            f"so execution {story.openings} took its result"
        )
    else:
        verdict = _verdict(step, last)
        facts += _ran_because(state, step, story, last)
    if last.outcome is not None:
        facts += _end_of(last, unit)
    if last.hash:
        facts.append(f"input hash {last.hash}")
    return verdict, tuple(facts)


def _verdict(step: StepState, last: Begun) -> str:
    if last.outcome is not None:
        return "succeeded" if last.outcome.ok else "failed"
    return RUNNING if step.status is Status.OPEN else "lost"


def _ran_because(state: State, step: StepState, story: Story, last: Begun) -> list[str]:
    if len(story.begun) == 1:
        return ["it ran because it had never run before"]
    before = story.begun[-2]
    facts = [f"it ran because {_cause(before)}"]
    if last.opening > before.opening:
        facts[0] += ", and the step was executed again"
    if last.hash == before.hash:
        same = "with the same inputs as before" if last.hash else "this language runs a reopened step as a whole"
        return [*facts, same]
    return facts + _changed(step, before, last)


def _cause(before: Begun) -> str:
    if before.outcome is None:
        return "the attempt before was lost: its driver ended before it did"
    if before.outcome.ok:
        return "its inputs are not those of the attempt that succeeded"
    return f"the attempt before failed ({before.outcome.reason})"


def _changed(step: StepState, before: Begun, last: Begun) -> list[str]:
    """The parts of the input hash that are known to differ."""
    facts = [
        f"changed input: {reference.text} (step {reference.name} gave another output)"
        for reference in step.plan.inputs
        if reference.root == "steps" and before.seen.get(reference.name) != last.seen.get(reference.name)
    ]
    if not facts:
        facts.append("its input hash changed in a part that the journal does not keep (a gate's feedback or its item)")
    return [*facts, f"input hash before {before.hash}"]


def _end_of(last: Begun, unit: str) -> list[str]:
    assert last.outcome is not None
    took = spell_ms(last.ended_at - last.at) if last.ended_at is not None else ""
    number = f"attempt {last.number + 1}" if last.number else "the first attempt"
    notes = [f"note: {note}" for note in notes_of(last.outcome.warnings, unit)]
    said = [
        fact
        for exchange in last.outcome.exchange
        for fact in (f"asked: {one_line(exchange.request[-400:], 400)}", f"answered: {one_line(exchange.answer, 400)}")
    ]
    if last.outcome.ok:
        return [f"{number} succeeded after {took}", *notes, *said]
    facts = [f"{number} failed after {took}: {last.outcome.reason}"]
    text = last.outcome.diagnostic or last.outcome.error
    return [*facts, *([one_line(text, 400)] if text else []), *notes, *said]
