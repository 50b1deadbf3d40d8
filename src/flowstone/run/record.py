"""A run's fixed header and its summary row: what lists and look-ups read without folding."""

from __future__ import annotations

from typing import Any

import msgspec

from flowstone.run.events import RunStatus


class RunRecord(msgspec.Struct, frozen=True, omit_defaults=True):
    """What is fixed when a run starts. Times are milliseconds since the epoch.

    `ref` names the workflow (an asset ref, or the path as given); `scope` is the folder that the
    run belongs to; `cwd` the folder in which it was started; `plan` the frozen plan as canonical
    JSON; `params` the resolved params without secret ones.
    """

    id: str
    dialect: str
    ref: str
    title: str
    scope: str
    cwd: str
    plan: str
    plan_hash: str
    created_at: int
    source_path: str | None = None
    source_digest: str | None = None
    params: Any = None
    provenance: tuple[tuple[str, str], ...] = ()
    parent_run: str | None = None
    parent_unit: str | None = None
    invocation_key: str | None = None
    harness: str | None = None
    session: str | None = None


class RunSummary(msgspec.Struct, frozen=True, omit_defaults=True):
    """Where a run stands; written in the same commit as the events that it follows from."""

    status: RunStatus = RunStatus.ACTIVE
    current_step: str | None = None
    updated_at: int = 0
    completed_at: int | None = None
    outputs: Any = None


class RunRow(msgspec.Struct, frozen=True):
    """A line of a list: the record without its plan, and the summary."""

    record: RunRecord
    summary: RunSummary


class NestedRun(msgspec.Struct, frozen=True):
    """A run that another one nests, with those that it nests itself, the oldest first."""

    row: RunRow
    below: tuple[NestedRun, ...] = ()
