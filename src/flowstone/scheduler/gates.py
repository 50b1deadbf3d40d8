"""Gates: a judge's verdict on a step's artifact decides whether the step closes, loops or is held.

Only a well-formed `complete: true` lets a step through. Every verdict and every rejection is
journaled, so a judged artifact is never judged twice.
"""

from __future__ import annotations

from typing import Any

from flowstone.plan.bounds import JUDGED_CHARS
from flowstone.plan.model import Gate, Route
from flowstone.plan.prompts import judge_messages
from flowstone.ports.dispatcher import Dispatch
from flowstone.run.events import AttemptStarted, Status, StepClosed, StepRejected
from flowstone.run.outcome import Reason
from flowstone.run.state import Attempt, StepState
from flowstone.scheduler.capacity import free_for
from flowstone.scheduler.closing import close_step, fail_step
from flowstone.scheduler.commands import Turn
from flowstone.values import canonical_json, clip, sha256_hex

JUDGE_INDEX = -1
"""The place of a judge's attempt among the units of a step."""
NO_FEEDBACK = "The judge gave no feedback."


def conclude(turn: Turn, step: StepState, closed: StepClosed) -> None:
    """Close a step that did its work, unless its gate wants a verdict first or rejects it."""
    gate = step.plan.gate
    if gate is None or gate.judge is None or gate.rubric is None:
        close_step(turn, step, closed)
    elif step.decided is not None:
        _by_a_person(turn, step, closed)
    else:
        _by_the_judge(turn, step, gate, closed)


def loops_left(step: StepState, gate: Gate | None) -> bool:
    """Whether the step may be executed once more after a rejection of the present execution."""
    if gate is None or gate.judge is None or not gate.loops:
        return False
    return len(step.rejections) - step.allowance_from + 1 < gate.max_loops


def reject(turn: Turn, step: StepState, feedback: str, missing: tuple[str, ...], *, by_schema: bool = False) -> None:
    """The present execution is over; the step opens again where a loop is left."""
    spent = not loops_left(step, step.plan.gate)
    if spent and turn.facts.steps_left is not None:
        turn.facts.steps_left -= 1
    turn.record(StepRejected(step.id, turn.now, step.loop, feedback, missing, by_schema, spent))


def _by_a_person(turn: Turn, step: StepState, closed: StepClosed) -> None:
    decided = step.decided
    assert decided is not None
    if decided.approved:
        close_step(turn, step, closed)
        return
    note = f": {decided.note}" if decided.note else ""
    fail_step(turn, step, Reason.REPORTED_FAILURE, f"rejected by {decided.by}{note}")


def _by_the_judge(turn: Turn, step: StepState, gate: Gate, closed: StepClosed) -> None:
    messages = judge_messages(step.id, gate.system, gate.rubric or "", _account(step, closed))
    digest = _hash(turn, gate, messages)
    unit = f"{step.id}.gate:l{step.loop}"
    attempt = _answered(step, unit, digest)
    if attempt is None:
        _ask(turn, step, gate, (unit, digest), messages)
        return
    outcome = attempt.outcome
    assert outcome is not None
    if not outcome.ok or not isinstance(outcome.value, dict):
        error = f'the judge of step "{step.id}" gave no verdict: {outcome.error or outcome.reason}'
        held = StepClosed(step.id, turn.now, Status.HELD, closed.artifact, reason=outcome.reason, error=error)
        close_step(turn, step, held)
    elif outcome.value.get("complete") is True:
        close_step(turn, step, closed)
    else:
        missing = tuple(str(item) for item in outcome.value.get("missing") or ())
        reject(turn, step, str(outcome.value.get("feedback") or NO_FEEDBACK), missing)


def _answered(step: StepState, unit: str, digest: str) -> Attempt | None:
    """The judge's attempt that answers this very question: of this execution, or kept from before."""
    found = step.judged if step.judged is not None else step.attempts.get((unit, 0))
    if found is None or found.outcome is None or found.lost or found.hash != digest:
        return None
    return found if found is step.judged or found.outcome.ok else None


def _ask(turn: Turn, step: StepState, gate: Gate, identity: tuple[str, str], messages: Any) -> None:
    if free_for(turn, gate.judge) == 0:
        turn.state.starved.add(step.place)
        return
    unit, digest = identity
    assert gate.judge is not None
    turn.record(AttemptStarted(step.id, unit, turn.now, digest, 0, JUDGE_INDEX))
    turn.decision.behind.append(
        Dispatch(
            run=turn.state.run_id,
            step=step.id,
            unit=unit,
            number=0,
            index=JUDGE_INDEX,
            hash=digest,
            spec=gate.judge,  # type: ignore[arg-type]  # a frozen plan holds no targets
            timeout_ms=gate.judge_timeout_ms,
            messages=messages,
        )
    )


def _account(step: StepState, closed: StepClosed) -> str:
    if isinstance(step.plan.action, Route):
        return closed.summary or ""
    spelt = canonical_json(closed.artifact)
    clipped = f", clipped at {JUDGED_CHARS} chars" if len(spelt) > JUDGED_CHARS else ""
    good = sum(1 for unit in step.units.values() if unit.status is Status.SUCCEEDED)
    return (
        f'Step "{step.id}" executed {step.count} unit(s) ({good} succeeded, {step.count - good} failed). '
        f"Step artifact (canonical JSON{clipped}):\n{clip(spelt, JUDGED_CHARS)}"
    )


def _hash(turn: Turn, gate: Gate, messages: tuple[tuple[str, str], ...]) -> str:
    """The input hash of a judge's attempt (akm facts 9.5)."""
    import msgspec

    rule = turn.state.plan.policies.hashing
    body = {
        "dispatch": msgspec.to_builtins(gate.judge),
        "hashVersion": rule.version,
        "invocation": None,
        "prompt": [list(message) for message in messages],
    }
    return sha256_hex(f"{rule.gate_prefix}{canonical_json(body)}")
