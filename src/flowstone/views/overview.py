"""A run as it stands, in words that belong to no language: one JSON document, or lines of text.

Numbers stay exact and statuses are the same words in both; a value that is kept outside the journal
because of its size is named by its digest.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from typing import Any

import msgspec

from flowstone.plan.model import Route
from flowstone.run.events import RunStatus, Status
from flowstone.run.outcome import Exchange
from flowstone.run.record import NestedRun, RunRow
from flowstone.run.state import Attempt, State, StepState
from flowstone.values import canonical_json
from flowstone.views.asking import question_of
from flowstone.views.children import caller_of
from flowstone.views.graph import kind_of
from flowstone.views.text import notes_of, one_line, plain_text, short_unit, spell_count, spell_ms, spell_part, tail
from flowstone.views.usage import (
    attempt_usage,
    budget_object,
    budget_warnings,
    run_usage,
    step_usage,
    usage_object,
    usage_text,
)
from flowstone.views.words import RUNNING, Word, plain_word

MARKS = {
    Status.PENDING: "·",
    Status.OPEN: "▸",
    Status.SUCCEEDED: "✓",
    Status.SKIPPED: "-",
    Status.FAILED: "✕",
    Status.UPSTREAM_FAILED: "✕",
    Status.HELD: "‖",
    Status.CANCELLED: "✕",
}
VALUE_CHARS = 160
DIAGNOSTIC_LINES = 12


class UnitRow(msgspec.Struct, frozen=True):
    """A unit by its last attempt; times are milliseconds."""

    step: str
    unit: str
    index: int
    status: str
    attempts: int
    started_at: int
    duration: int | None = None
    reason: str | None = None
    error: str | None = None
    diagnostic: str | None = None
    exit_code: int | None = None
    usage: dict[str, Any] | None = None
    exchange: tuple[Exchange, ...] = ()
    notes: tuple[str, ...] = ()
    """What a user should know of the result besides: that output was cut, that something was left running."""


def document(
    row: RunRow,
    state: State,
    now: int,
    *,
    units: bool = False,
    driver: str | None = None,
    children: Sequence[NestedRun] = (),
) -> dict[str, Any]:
    """The run as a JSON object; with `units` each unit has an entry in its step. `driver` drives it now.

    `children` are the runs of nested workflows.
    """
    record = row.record
    return {
        "run": record.id,
        "ref": record.ref,
        "title": record.title,
        "language": record.dialect,
        "status": state.status.value,
        "interrupted": state.interrupted,
        "driver": driver,
        "currentStep": None if state.status is RunStatus.SUCCEEDED else state.current_step,
        "createdAt": iso_time(record.created_at),
        "updatedAt": iso_time(state.updated_at or record.created_at),
        "completedAt": iso_time(state.closed_at),
        "durationMs": duration_of(state, now),
        "planHash": record.plan_hash,
        "source": record.source_path,
        "params": record.params,
        "error": state.error,
        "outputs": state.outputs,
        **usage_object(run_usage(state)),
        **budget_object(state),
        "warnings": budget_warnings(state),
        "steps": [_step_document(state, step, now, units) for step in state.order],
        "children": [_child_document(child) for child in children],
    }


def run_entry(row: RunRow) -> dict[str, Any]:
    """A line of a list, as a JSON object."""
    record, summary = row.record, row.summary
    return {
        "run": record.id,
        "ref": record.ref,
        "title": record.title,
        "language": record.dialect,
        "status": summary.status.value,
        "currentStep": summary.current_step,
        "createdAt": iso_time(record.created_at),
        "updatedAt": iso_time(summary.updated_at),
        "folder": record.cwd,
    }


def text_lines(
    row: RunRow,
    state: State,
    now: int,
    word: Word = plain_word,
    *,
    units: bool = False,
    driver: str | None = None,
    children: Sequence[NestedRun] = (),
) -> list[str]:
    """The run in lines of text; `word` gives the words for statuses, `driver` drives it now."""
    record = row.record
    lines = [
        f"{one_line(record.title or record.ref)}: {headline(state)}{_driven(state, driver)}",
        f"  run   {record.id}",
    ]
    lines.append(f"  file  {one_line(record.source_path or record.ref)}")
    if (duration := duration_of(state, now)) is not None:
        lines.append(f"  took  {spell_ms(duration)}" if not state.active else f"  age   {spell_ms(duration)}")
    if used := usage_text(usage_object(run_usage(state)).get("usage")):
        lines.append(f"  used  {used}")
    lines += [f"  warning: {warning}" for warning in budget_warnings(state)]
    width = max((len(step.id) for step in state.order), default=0)
    for step in state.order:
        lines += _step_lines(state, step, now, width, word)
        if units:
            lines += [line for unit in unit_rows(state, step, now) for line in unit_lines(unit)]
    if children:
        lines.append("nested runs")
        lines += [line for child in children for line in _child_lines(child, word, "  ")]
    if state.outputs:
        lines.append("outputs")
        lines += [f"  {name} = {value_text(value)}" for name, value in state.outputs.items()]
    if state.error and not any(step.error == state.error for step in state.order):
        lines += [f"error: {line}" for line in plain_text(short_unit(state.error)).splitlines()]
    return lines


def _child_lines(child: NestedRun, word: Callable[[str], str], front: str) -> list[str]:
    record, status = child.row.record, child.row.summary.status.value
    line = f"{front}{caller_of(child)}  {word(status)}  {record.id}  {one_line(record.ref)}"
    return [line, *(below for inner in child.below for below in _child_lines(inner, word, f"{front}  "))]


def _child_document(child: NestedRun) -> dict[str, Any]:
    record, summary = child.row.record, child.row.summary
    shown = {
        "run": record.id,
        "step": caller_of(child),
        "ref": record.ref,
        "status": summary.status.value,
        "createdAt": iso_time(record.created_at),
        "completedAt": iso_time(summary.completed_at),
    }
    return {**shown, "children": [_child_document(inner) for inner in child.below]} if child.below else shown


def _driven(state: State, driver: str | None) -> str:
    """Whether anyone drives an active run: one without a driver waits for a resume."""
    if not state.active:
        return ""
    return f", driven by {driver}" if driver is not None else ", not driven now (flowstone resume goes on)"


def headline(state: State) -> str:
    """The run's status in a few words."""
    if state.active and state.interrupted is not None:
        return f"active, interrupted ({state.interrupted})"
    if state.status is RunStatus.ACTIVE and state.started_at is None:
        return "active, not started"
    return state.status.value


def unit_rows(state: State, step: StepState, now: int) -> list[UnitRow]:
    """The units of a step that were ever started, in item order."""
    attempts: dict[str, int] = {}
    for attempt in step.attempts.values():
        attempts[attempt.unit] = attempts.get(attempt.unit, 0) + attempt.tries
    return [
        _unit_row(step, attempt, attempts[attempt.unit], now, usage_object(attempt_usage(state, step, attempt)))
        for attempt in step.final_attempts()
    ]


def unit_lines(row: UnitRow) -> list[str]:
    """A unit in one line, and under a failed one what is known of the failure."""
    tried = f", {row.attempts} attempts" if row.attempts > 1 else ""
    reason = f"  {row.reason}" if row.reason else ""
    took = f"  {spell_ms(row.duration)}" if row.duration is not None else ""
    used = f"  {usage_text(row.usage)}" if row.usage else ""
    lines = [f"      {one_line(short_unit(row.unit))}  {row.status}{reason}{took}{tried}{used}"]
    if row.reason or row.diagnostic:
        lines += _indented(row.diagnostic or row.error or "", "          ")
    for said in row.exchange:
        lines += [
            f"          asked: {one_line(said.request[-VALUE_CHARS:])}",
            f"          said:  {one_line(said.answer)}",
        ]
    return [*lines, *(f"          note: {one_line(short_unit(note), 400)}" for note in row.notes)]


def unit_counts(step: StepState) -> dict[str, int]:
    """Units of the step's present (or last) execution by where they stand."""
    total = step.count if step.opened_at is not None else 0
    # A replayed journal tells how attempts ended, not what the scheduler made of them at the time.
    outcomes = [attempt.outcome for attempt in step.final_attempts() if attempt.outcome is not None]
    succeeded = sum(1 for outcome in outcomes if outcome.ok)
    failed = len(outcomes) - succeeded
    return {"total": total, "succeeded": succeeded, "failed": failed, "running": step.running}


def duration_of(state: State, now: int) -> int | None:
    """Milliseconds from the first drive to the run's end, or until now."""
    if state.started_at is None:
        return None
    if state.active and state.interrupted is None:
        return max(0, now - state.started_at)
    return (state.closed_at or state.updated_at) - state.started_at


def step_duration(step: StepState, now: int) -> int | None:
    """Milliseconds that a step was open."""
    if step.opened_at is None:
        return None
    return (step.closed_at if step.closed_at is not None else now) - step.opened_at


def iso_time(at: int | None) -> str | None:
    """A time in milliseconds since the epoch as RFC 3339, UTC."""
    if at is None:
        return None
    moment = datetime.fromtimestamp(at / 1000, UTC)
    return moment.strftime("%Y-%m-%dT%H:%M:%S.") + f"{at % 1000:03d}Z"


def value_text(value: Any, limit: int = VALUE_CHARS) -> str:
    """A value in one line: text as it is, anything else as JSON."""
    return one_line(value if isinstance(value, str) else canonical_json(value), limit)


def skip_note(step: StepState) -> str | None:
    """Why a step was skipped, where that is known."""
    note = (step.detail or {}).get("note") if isinstance(step.detail, dict) else None
    if note is not None:
        return str(note)
    if step.status is Status.SKIPPED and step.plan.when is not None:
        return f"its condition is false: {step.plan.when.source}"
    return None


def step_notes(step: StepState, limit: int = 20) -> list[str]:
    """The notes on the units of a step's last execution, with their names; at most `limit` and a count of the rest."""
    noted = [(a.unit, a.outcome.warnings) for a in step.final_attempts() if a.outcome and a.outcome.warnings]
    texts = [f'unit "{unit}": {note}' for unit, warnings in noted for note in notes_of(warnings, unit)]
    return texts[:limit] + ([f"… and {len(texts) - limit:,} more"] if len(texts) > limit else [])


def _step_document(state: State, step: StepState, now: int, units: bool) -> dict[str, Any]:
    entry: dict[str, Any] = {
        "id": step.id,
        "kind": kind_of(step.plan),
        "status": plain_word(step.status),
        "startedAt": iso_time(step.opened_at),
        "endedAt": iso_time(step.closed_at),
        "durationMs": step_duration(step, now),
        "loop": step.loop,
        "units": unit_counts(step),
        "output": step.artifact,
        "reason": step.reason.value if step.reason else None,
        "error": step.error,
        "summary": step.summary,
        "note": skip_note(step),
        **usage_object(step_usage(state, step)),
    }
    if notes := step_notes(step):
        entry["notes"] = notes
    if step.blob is not None:
        entry["outputDigest"] = step.blob
    if units:
        entry["unitRows"] = [_unit_document(unit) for unit in unit_rows(state, step, now)]
    return entry


def _unit_document(row: UnitRow) -> dict[str, Any]:
    return {
        "unit": row.unit,
        "index": row.index,
        "status": row.status,
        "attempts": row.attempts,
        "startedAt": iso_time(row.started_at),
        "durationMs": row.duration,
        "reason": row.reason,
        "error": row.error,
        "diagnostic": row.diagnostic,
        "exitCode": row.exit_code,
        "notes": list(row.notes),
        **({"usage": row.usage} if row.usage else {}),
        **({"exchange": [{"request": e.request, "answer": e.answer} for e in row.exchange]} if row.exchange else {}),
    }


def _step_lines(state: State, step: StepState, now: int, width: int, word: Callable[[str], str]) -> list[str]:
    facts = [word(step.status.value)]
    counts = unit_counts(step)
    if step.fans_out and step.opened_at is not None:
        facts.append(spell_part(counts["succeeded"] + counts["failed"], counts["total"], "unit"))
        facts += [f"{counts['failed']} failed"] if counts["failed"] else []
    if (took := step_duration(step, now)) is not None:
        facts.append(spell_ms(took))
    if used := usage_text(usage_object(step_usage(state, step)).get("usage")):
        facts.append(used)
    if isinstance(step.plan.action, Route) and isinstance(step.detail, dict) and "route" in step.detail:
        facts.append(f"→ {step.detail['route'].get('selected')}")
    lines = [f"  {MARKS[step.status]} {step.id:<{width}}  {'  '.join(facts)}"]
    if (note := skip_note(step)) is not None:
        lines.append(f"      {one_line(note)}")
    if (question := question_of(state.run_id, step)) is not None:
        lines.append(f"      {question}")
    if step.error:
        reason = f"{step.reason.value}: " if step.reason else ""
        lines += _indented(reason + step.error, "      ")
    elif step.artifact is not None and not isinstance(step.plan.action, Route):
        lines.append(f"      = {value_text(step.artifact)}")
    elif step.blob is not None:
        lines.append(f"      = (large value, digest {step.blob[:12]})")
    return lines


def _indented(text: str, indent: str) -> Iterator[str]:
    """The end of a text, line by line, behind an indent."""
    kept = tail(plain_text(short_unit(text)), 4_000).text.strip("\n").split("\n")
    if len(kept) > DIAGNOSTIC_LINES:
        yield f"{indent}… {spell_count(len(kept) - DIAGNOSTIC_LINES, 'more line')} above"
    for line in itertools.islice(kept, max(0, len(kept) - DIAGNOSTIC_LINES), None):
        yield f"{indent}{line}".rstrip()


def _unit_row(step: StepState, attempt: Attempt, attempts: int, now: int, used: dict[str, Any]) -> UnitRow:
    outcome = attempt.outcome
    unit = step.units.get(attempt.index)
    if attempt.lost:
        status = "lost"
    elif outcome is None:
        status = RUNNING
    elif unit is not None and unit.retry_at is not None:
        status = "waiting"
    else:
        status = "succeeded" if outcome.ok else "failed"
    return UnitRow(
        step.id,
        attempt.unit,
        attempt.index,
        status,
        attempts,
        attempt.started_at,
        (attempt.ended_at if attempt.ended_at is not None else now) - attempt.started_at,
        outcome.reason.value if outcome and outcome.reason else None,
        outcome.error if outcome else None,
        outcome.diagnostic if outcome else None,
        outcome.exit_code if outcome else None,
        used.get("usage"),
        outcome.exchange if outcome else (),
        tuple(notes_of(outcome.warnings, attempt.unit)) if outcome else (),
    )
