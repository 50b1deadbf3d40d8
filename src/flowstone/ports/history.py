"""What each start of a task came to: the records that `task history` shows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import msgspec


class TaskRun(msgspec.Struct, frozen=True, omit_defaults=True):
    """One start of a task. Times are milliseconds since the epoch.

    `status` is running, completed, active, blocked, failed, disabled or skipped; `origin` tells who
    started it (manual, schedule); `detail` may hold a `reason`, such as timeout, and more.
    """

    ref: str
    started_at: int
    status: str
    origin: str = "manual"
    run_id: str | None = None
    ended_at: int | None = None
    detail: dict[str, Any] = {}


class TaskHistory(Protocol):
    """The records of one database. A record is durable when the call returns."""

    def begin(self, run: TaskRun) -> int:
        """Keep a start; returns its number."""

    def update(self, number: int, run: TaskRun) -> None:
        """Replace what is known of a start."""

    def newest(self, ref: str | None = None, limit: int | None = None) -> Sequence[TaskRun]:
        """The starts of a task (or of all), the newest first."""

    def forget(self, ref: str) -> int:
        """Remove the records of a task; returns how many there were."""
