"""Unit rows: every attempt of a run as `status --units` lists them."""

from __future__ import annotations

from typing import Any

from flowstone.plan.bounds import DIAGNOSTIC_CHARS
from flowstone.run.events import Status
from flowstone.run.outcome import Outcome, Reason
from flowstone.run.state import Attempt, State, StepState
from flowstone.values import canonical_json, clip
from flowstone.views.moments import iso
from flowstone.views.specs import engine_of, runtime_kind
from flowstone.views.text import notes_of
from flowstone.views.usage import attempt_usage, usage_object
from flowstone.views.words import Word

STALE_MS = 90_000
"""A unit that has run for so long without an end is called stale (akm facts 23)."""

LOST = "The driver that ran this attempt is gone; the unit is dispatched again when the run goes on."


def unit_rows(state: State, word: Word, now: int) -> list[dict[str, Any]]:
    """One row an attempt, by step, item and attempt number (akm facts 19.4, 21.3)."""
    rows: list[dict[str, Any]] = []
    for step in state.order:
        attempts = sorted(step.attempts.values(), key=lambda a: (a.index < 0, a.index, a.unit, a.number))
        shared = _shared(step)
        for attempt in attempts:
            row = {**_row(attempt, word, now), **(shared if attempt.index >= 0 else _judged(step))}
            rows.append({**row, **usage_object(attempt_usage(state, step, attempt))})
    return rows


def row_id(attempt: Attempt) -> str:
    """The id of an attempt's row: the unit's, with `~r1` and so on behind it for repetitions."""
    return attempt.unit if attempt.number == 0 else f"{attempt.unit}~r{attempt.number}"


def _shared(step: StepState) -> dict[str, Any]:
    spec = step.plan.unit.spec if step.plan.unit else None
    return {
        "nodeId": f"{step.id}.unit" if step.fans_out else step.id,
        "stepId": step.id,
        "phase": None,
        "engine": engine_of(spec),
        "runtimeKind": runtime_kind(spec),
        "platform": getattr(spec, "platform", None),
        "claimHolder": None,
        "claimExpiresAt": None,
    }


def _judged(step: StepState) -> dict[str, Any]:
    """What the rows of a step's judge share."""
    judge = step.plan.gate.judge if step.plan.gate else None
    return {
        **_shared(step),
        "nodeId": f"{step.id}.gate",
        "phase": "gate",
        "engine": engine_of(judge),
        "runtimeKind": runtime_kind(judge),
        "platform": getattr(judge, "platform", None),
    }


def _row(attempt: Attempt, word: Word, now: int) -> dict[str, Any]:
    outcome = attempt.outcome
    idle = now - attempt.started_at if attempt.running else 0
    reason = outcome.reason if outcome else (Reason.ABORTED if attempt.lost else None)
    row = {
        "unitId": row_id(attempt),
        "status": _status(attempt, word),
        "attempts": attempt.tries,
        "tokens": outcome.tokens if outcome else None,
        "failureReason": reason,
        "sessionId": outcome.session if outcome else None,
        "diagnostic": _diagnostic(outcome) if outcome else (LOST if attempt.lost else None),
        "startedAt": iso(attempt.started_at),
        "finishedAt": iso(attempt.ended_at),
        "stale": idle >= STALE_MS,
        "staleIdleMs": idle if idle >= STALE_MS else None,
    }
    if outcome is not None and outcome.warnings:
        row["notes"] = notes_of(outcome.warnings, attempt.unit)
    if outcome is not None and outcome.exchange:
        row["exchange"] = [{"request": e.request, "answer": e.answer} for e in outcome.exchange]
    return row


def _status(attempt: Attempt, word: Word) -> str:
    if attempt.running:
        return "running"
    ok = attempt.outcome is not None and attempt.outcome.ok
    return word(Status.SUCCEEDED if ok else Status.FAILED)


def _diagnostic(outcome: Outcome) -> str | None:
    """The result or the account of the failure, clipped; None for no output."""
    if not outcome.ok:
        text = outcome.diagnostic or outcome.error
        return None if text is None else clip(text, DIAGNOSTIC_CHARS)
    if outcome.absent or outcome.blob is not None:
        return None
    value = outcome.value
    return clip(value if isinstance(value, str) else canonical_json(value), DIAGNOSTIC_CHARS)
