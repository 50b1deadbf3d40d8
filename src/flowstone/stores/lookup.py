"""Look-ups that every store answers in the same words: ids by prefix, unknown runs, conflicts."""

from __future__ import annotations

from collections.abc import Sequence

from flowstone.errors import JournalConflict, UnknownRun, UsageError

PREFIX_CHARS = 8
"""Characters that the beginning of an id needs to stand for it."""


def pick_id(prefix: str, matches: Sequence[str]) -> str:
    """Of the ids that begin with `prefix`, the one that it stands for."""
    if prefix in matches:
        return prefix
    if not matches or len(prefix) < PREFIX_CHARS:
        raise unknown_run(prefix)
    if len(matches) > 1:
        raise UsageError(
            f'"{prefix}" is the beginning of {len(matches)} runs: {", ".join(matches)}',
            hint="give more of the id",
        )
    return matches[0]


def unknown_run(run_id: str) -> UnknownRun:
    return UnknownRun(f'there is no run "{run_id}"', hint="list the runs to find its id")


def conflict(run_id: str, expected: int, last: int) -> JournalConflict:
    return JournalConflict(
        f"run {run_id}: another driver appended first (the journal ends at {last}, not at {expected})",
        hint="let the other driver go on, or resume the run once it has ended",
    )
