"""Runs: a run's row as the object that status, list and every envelope show."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from flowstone.plan.model import IR_VERSION
from flowstone.run.events import RunStatus
from flowstone.run.record import RunRecord, RunRow, RunSummary
from flowstone.views.moments import iso
from flowstone.views.words import Word

CHECK_IN_MS = 90_000
"""An active run that nothing has happened to for so long asks its agent to go on (akm facts 23)."""


def run_list(rows: Iterable[RunRow], word: Word) -> dict[str, Any]:
    """The envelope of a list of runs, the newest first."""
    return {"runs": [run_object(row, word) for row in rows], "shape": "workflow-list", "schemaVersion": 1}


def run_object(row: RunRow, word: Word, ir_version: int = IR_VERSION) -> dict[str, Any]:
    """A run's header (akm facts 21.3); what a run does not have is null, exports and parents absent."""
    record, summary = row.record, row.summary
    shown: dict[str, Any] = {
        "id": record.id,
        "workflowRef": record.ref,
        "scopeKey": record.scope,
        "workflowEntryId": None,
        "workflowTitle": record.title,
        "status": word(summary.status),
        "currentStepId": summary.current_step,
        "createdAt": iso(record.created_at),
        "updatedAt": iso(summary.updated_at or record.created_at),
        "completedAt": iso(summary.completed_at),
        "params": record.params or {},
        "agentHarness": record.harness,
        "agentSessionId": record.session,
        "planIrVersion": ir_version,
        "executionSupport": "supported",
    }
    if summary.outputs is not None:
        shown["outputs"] = summary.outputs
    if record.parent_run is not None:
        shown["parentRunId"] = record.parent_run
        shown["spawnedByUnitId"] = record.parent_unit
    return shown


def check_in(record: RunRecord, summary: RunSummary, now: int) -> dict[str, Any] | None:
    """What an agent that watches an idle active run is told; None when there is nothing to tell."""
    idle = now - (summary.updated_at or record.created_at)
    if summary.status is not RunStatus.ACTIVE or idle < CHECK_IN_MS:
        return None
    return {
        "signal": "continue",
        "directive": f"This run is active and idle. Go on with it: akm workflow run {record.id}",
        "idleMs": idle,
        "agentHarness": record.harness,
        "agentSessionId": record.session,
    }
