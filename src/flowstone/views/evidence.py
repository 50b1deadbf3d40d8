"""Evidence: what a step that has ended rests on, bounded so that it can be shown and sent.

It is for people and scripts that read a status. The engine hands on the artifacts themselves, so a
shortened row is never data of a later step.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

from flowstone.plan.bounds import EVIDENCE_BYTES, EVIDENCE_PREVIEW_CHARS, UNIT_TEXT_CHARS
from flowstone.plan.model import Route
from flowstone.run.events import Status
from flowstone.run.outcome import Outcome
from flowstone.run.state import Attempt, StepState
from flowstone.values import canonical_json, clip

TRUNCATED = "__akm_evidence_truncated__"

Peek: TypeAlias = Callable[[str], "tuple[int, str] | None"]
"""From the digest of a stored blob to its size in bytes and its beginning; None for a lost one."""

Row: TypeAlias = dict[str, Any]


def no_peek(digest: str) -> None:
    """A `Peek` that knows no blob."""


def evidence_of(step: StepState, peek: Peek = no_peek) -> Row | None:
    """The evidence row of a step (akm facts 14); None when it has not ended or was skipped."""
    if step.status not in (Status.SUCCEEDED, Status.FAILED, Status.HELD):
        return None
    detail: Row = step.detail or {}
    if "error" in detail:
        return {"error": detail["error"]}
    if isinstance(step.plan.action, Route):
        return {"route": detail.get("route")}
    row: Row = {"units": [_entry(attempt, _typed(step)) for attempt in _decided(step)], "itemCount": step.count}
    row["output"] = _output(step, peek)
    row.update((key, value) for key, value in detail.items() if key in ("vote", "voteError"))
    return _bounded(row)


def _decided(step: StepState) -> list[Attempt]:
    return [attempt for attempt in step.final_attempts() if attempt.outcome is not None]


def _typed(step: StepState) -> bool:
    return step.plan.unit is not None and step.plan.unit.has_schema


def _entry(attempt: Attempt, typed: bool) -> Row:
    outcome = attempt.outcome
    assert outcome is not None
    if not outcome.ok:
        return {"unitId": attempt.unit, "ok": False, "failureReason": outcome.reason}
    entry: Row = {"unitId": attempt.unit, "ok": True}
    if outcome.blob is not None and outcome.value is None:
        entry["result"] = _marker("the result is kept outside the row", None, None)
    elif not outcome.absent:
        if typed or not isinstance(outcome.value, str):
            entry["result"] = outcome.value
        else:
            entry["text"] = clip(outcome.value, UNIT_TEXT_CHARS)
    return entry


def _output(step: StepState, peek: Peek) -> Any:
    if step.blob is not None and step.artifact is None:
        size, preview = peek(step.blob) or (None, None)
        return _marker("the artifact is kept outside the row", size, preview)
    if step.status is Status.SUCCEEDED or not step.fans_out:
        return step.artifact
    return [_value(attempt.outcome) for attempt in _decided(step)]


def _value(outcome: Outcome | None) -> Any:
    return outcome.value if outcome is not None and outcome.ok else None


def _bounded(row: Row) -> Row:
    """The row, its largest entries replaced by markers until it fits (akm facts 14)."""
    spelt = {key: canonical_json(value) for key, value in row.items()}
    sizes = {key: len(text) if text.isascii() else len(text.encode("utf-8", "replace")) for key, text in spelt.items()}
    total = sum(sizes.values())
    for key in sorted(sizes, key=lambda key: -sizes[key]):
        if total <= EVIDENCE_BYTES:
            break
        row[key] = _marker("the evidence row is too large", sizes[key], spelt[key])
        total += len(canonical_json(row[key])) - sizes[key]
    return row


def _marker(reason: str, size: int | None, preview: str | None) -> Row:
    marker: Row = {TRUNCATED: True, "reason": reason, "originalBytes": size, "limitBytes": EVIDENCE_BYTES}
    if preview is not None:
        marker["preview"] = preview[:EVIDENCE_PREVIEW_CHARS]
    return marker
