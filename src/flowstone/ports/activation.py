"""What a schedule needs of this machine: the rows of its scheduler, and which schedules are enabled here.

Implemented in `schedule/` (crontab, systemd timers, launchd, Windows) and in `config/`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import StrEnum
from typing import Protocol

import msgspec


class Missed(StrEnum):
    """What becomes of fire times at which nothing could run."""

    SKIP = "skip"
    ONCE = "once"
    ALL = "all"


class Row(msgspec.Struct, frozen=True):
    """One entry of a machine's scheduler: at the times of `cron`, run `argv` in the folder `cwd`.

    `key` names it: the ref of what runs, `#` and the number of its time table. `env` are variables
    that the command needs beside those of the scheduler. A row that was read back has the same form.
    """

    key: str
    cron: str
    argv: tuple[str, ...]
    cwd: str
    env: tuple[tuple[str, str], ...] = ()

    @property
    def ref(self) -> str:
        """What runs: the key without its number."""
        return self.key.rpartition("#")[0]


class Unschedulable(ValueError):
    """A scheduler cannot hold a row; the message says why and what to write instead."""


class Timetable(Protocol):
    """The rows of ours in a machine's scheduler; those of others are never read as ours or changed.

    Rows are ours when they bear our mark and the mark of this installation (`owner`, a short text).
    Every change is one row, complete and durable when the call returns: a crash in between leaves
    rows of which each is either as before or as wanted. Calls are made by one process at a time;
    `put` and `remove` raise StoreError where the scheduler refuses, and leave everything as it was.
    """

    name: str
    missed: str
    """The rule for missed times that this scheduler keeps, as a sentence."""

    def problem(self) -> str | None:
        """Why the scheduler cannot be used here, with what to do about it; None when it can."""

    def rows(self) -> Sequence[Row]:
        """Our rows as they stand, in the scheduler's order. A row that was altered reads as it is now."""

    def put(self, row: Row) -> None:
        """Add the row, or replace the one with its key. Unschedulable, before anything is changed."""

    def remove(self, key: str) -> None:
        """Remove our row with the key; without one nothing happens."""


Change = Callable[[tuple[str, ...]], tuple[str, ...]]


class Activation(Protocol):
    """Which schedules run on this machine: a list of canonical refs, kept beside the configuration.

    What a source file says about times holds everywhere; whether they are obeyed is said here.
    """

    def enabled(self) -> tuple[str, ...]:
        """The refs, in the order in which they were enabled."""

    def change(self, change: Change) -> tuple[str, ...]:
        """Replace the list by what `change` makes of it, while nobody else does; returns the new one."""
