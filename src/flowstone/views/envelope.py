"""The run envelope: what one drive did, and the run that it left."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Protocol

from flowstone.run.events import RunStatus, Status
from flowstone.run.record import RunRecord, RunRow
from flowstone.run.state import State
from flowstone.views.children import blocked_child
from flowstone.views.runs import check_in, run_object
from flowstone.views.usage import run_usage, usage_object
from flowstone.views.words import Word


class Ended(Protocol):
    """A step that ended in a drive."""

    @property
    def step(self) -> str: ...
    @property
    def status(self) -> Status: ...
    @property
    def unit_count(self) -> int: ...
    @property
    def failed_units(self) -> int: ...
    @property
    def summary(self) -> str: ...


def run_envelope(
    record: RunRecord,
    state: State,
    executed: Iterable[Ended],
    word: Word,
    now: int,
    *,
    cause: str | None = None,
    resumed: bool = False,
    warnings: Sequence[str] = (),
) -> dict[str, Any]:
    """The answer of `run` (akm facts 21.3).

    `cause` is what interrupted the drive: "timeout" or "signal:<name>". A retried step has an entry
    for each of its executions; steps that were skipped have one too, but were not processed.
    """
    ended = list(executed)
    row = RunRow(record, state.summary())
    view: dict[str, Any] = {
        "ok": cause is None and not _gate(state) and row.summary.status in (RunStatus.ACTIVE, RunStatus.SUCCEEDED),
        "run": run_object(row, word, state.plan.ir_version),
        "executed": [_entry(step) for step in ended],
        "stepsProcessed": sum(step.status in (Status.SUCCEEDED, Status.FAILED) for step in ended),
    }
    view |= usage_object(run_usage(state))
    if row.summary.status is RunStatus.SUCCEEDED:
        view["done"] = True
    view |= _gate(state)
    if cause is not None:
        view["aborted"] = True
        view["timedOut"] = cause == "timeout"
    if resumed:
        view["resumed"] = True
    directive = check_in(row.record, row.summary, now)
    if directive is not None:
        view["checkin"] = view["run"]["checkin"] = directive
    if warnings:
        view["warnings"] = list(warnings)
    return {**view, "shape": "workflow-run", "schemaVersion": 1}


def _gate(state: State) -> dict[str, Any]:
    """A rejection that stands, a blocked child, or a judge that gave no verdict (akm facts 15, 20)."""
    for step in state.order:
        if step.spent:
            last = step.rejections[-1]
            return {"gateRejection": {"stepId": step.id, "missing": list(last.missing), "feedback": last.feedback}}
        if step.status is Status.HELD and (blocked := blocked_child(state)) is not None:
            return {"childBlocked": blocked}
        if step.status is Status.HELD:
            return {"judgeFailure": {"stepId": step.id, "message": step.error or ""}}
    return {}


def skipped_envelope(reason: str, message: str) -> dict[str, Any]:
    """The answer of `run --skip-if-locked` when another process holds the run (akm facts 19.6)."""
    return {
        "ok": True,
        "skipped": {"reason": reason, "message": message},
        "shape": "workflow-run",
        "schemaVersion": 1,
    }


def _entry(step: Ended) -> dict[str, Any]:
    return {
        "stepId": step.step,
        "ok": step.status in (Status.SUCCEEDED, Status.SKIPPED),
        "unitCount": step.unit_count,
        "failedUnits": step.failed_units,
        "summary": step.summary,
    }
