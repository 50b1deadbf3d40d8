"""Keeps house: finds runs, worktrees and crash reports that nobody needs any more, and removes them.

What is active or can be resumed is never found: a failed run only on request, a held one not at all.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from enum import StrEnum
from typing import TYPE_CHECKING

import msgspec

from flowstone.errors import FlowstoneError, StoreError
from flowstone.run.events import RunStatus

if TYPE_CHECKING:
    from flowstone.api.session import Session
    from flowstone.ports.store import Store
    from flowstone.run.record import RunRow

DAY_MS = 24 * 3_600_000
STRANGER_MS = 7 * DAY_MS
"""From this age a worktree goes whose run nobody here knows: the next isolated run would clear it too."""


class Kind(StrEnum):
    RUN = "run"
    WORKTREE = "worktree"
    CRASH_REPORT = "crash report"


class Rules(msgspec.Struct, frozen=True):
    """What may go: what ended `older_ms` ago or more, and the oldest runs beyond `max_bytes` of journals.

    `failed` counts failed runs as ended, though they could be resumed.
    """

    older_ms: int = 30 * DAY_MS
    max_bytes: int | None = None
    failed: bool = False


class Rubbish(msgspec.Struct, frozen=True):
    """A thing that may go: `name` is a run's id or a path, `at` its end (milliseconds since the epoch)."""

    kind: Kind
    name: str
    at: int
    size: int
    title: str = ""
    dialect: str = ""


class Cleared(msgspec.Struct, frozen=True):
    """What went, what could not (with the reason), and the bytes of both journals and blobs that were freed."""

    removed: tuple[Rubbish, ...]
    kept: tuple[tuple[Rubbish, str], ...]
    blobs: int
    freed: int


def rubbish(session: Session, rules: Rules) -> tuple[Rubbish, ...]:
    """What may go by the rules, the oldest first of each kind; removes nothing."""
    found: list[Rubbish] = []
    ended: dict[str, bool] = {}
    before = session.wiring.clock.now_ms() - rules.older_ms
    for store in session.wiring.stores():
        rows = list(store.find(children=True))
        ended |= {row.record.id: _has_ended(row, rules) for row in rows}
        found += _runs(store, [row for row in rows if row.record.parent_run is None], rules, before)
    found += _trees(session, ended, before)
    found += _crashes(session, before)
    return tuple(found)


def clear(session: Session, found: Sequence[Rubbish]) -> Cleared:
    """Remove what `rubbish` found. A run that somebody has taken up meanwhile stays, and is told."""
    removed, kept = [], []
    for item in found:
        try:
            _remove(session, item)
        except (OSError, FlowstoneError) as error:
            kept.append((item, str(error)))
        else:
            removed.append(item)
    blobs = freed = 0
    for store in session.wiring.stores(readonly=False):
        count, size = store.sweep_blobs()
        blobs, freed = blobs + count, freed + size
        if any(item.kind is Kind.RUN for item in removed):
            store.compact()
    return Cleared(tuple(removed), tuple(kept), blobs, freed + sum(item.size for item in removed))


def _has_ended(row: RunRow, rules: Rules) -> bool:
    status = row.summary.status
    return status in (RunStatus.SUCCEEDED, RunStatus.ABANDONED) or (rules.failed and status is RunStatus.FAILED)


def _runs(store: Store, rows: Sequence[RunRow], rules: Rules, before: int) -> Iterator[Rubbish]:
    sizes = {row.record.id: sum(map(store.size, _family(store, row.record.id))) for row in rows}
    beyond = 0 if rules.max_bytes is None else sum(sizes.values()) - rules.max_bytes
    for row in reversed(rows):
        if not _has_ended(row, rules):
            continue
        size = sizes[row.record.id]
        if row.summary.updated_at <= before or beyond > 0:
            beyond -= size
            record = row.record
            yield Rubbish(Kind.RUN, record.id, row.summary.updated_at, size, record.title, record.dialect)


def _family(store: Store, run_id: str) -> list[str]:
    """A run and those that it nests, the innermost first."""
    found, waiting = [], [run_id]
    while waiting:
        found.append(waiting.pop())
        waiting += [row.record.id for row in store.find(parent=found[-1])]
    return found[::-1]


def _trees(session: Session, ended: Mapping[str, bool], before: int) -> Iterator[Rubbish]:
    """Trees of runs that have ended; of a run not known here, which may be resumable elsewhere, old ones."""
    from flowstone.dispatchers.process.worktree import bytes_of, kept_trees

    for run, path, at in kept_trees(session.wiring.env.get("TMPDIR") or "/tmp"):
        if ended.get(run, at <= session.wiring.clock.now_ms() - STRANGER_MS) and at <= before:
            yield Rubbish(Kind.WORKTREE, path, at, bytes_of(path), title=f"of run {run}")


def _crashes(session: Session, before: int) -> Iterator[Rubbish]:
    folder = session.wiring.paths.crashes
    try:
        names = sorted(os.listdir(folder))
    except OSError:
        return
    for name in names:
        path = os.path.join(folder, name)
        found = os.lstat(path)
        if os.path.isfile(path) and found.st_mtime * 1000 <= before:
            yield Rubbish(Kind.CRASH_REPORT, path, int(found.st_mtime * 1000), found.st_size)


def _remove(session: Session, item: Rubbish) -> None:
    match item.kind:
        case Kind.RUN:
            _remove_run(session.wiring.store_for(item.dialect), item.name)
        case Kind.WORKTREE:
            from flowstone.dispatchers.process.worktree import discard_kept

            if not discard_kept(item.name):
                raise StoreError("its run is at work")
        case Kind.CRASH_REPORT:
            os.unlink(item.name)


def _remove_run(store: Store, run_id: str) -> None:
    """Delete a run and what it nests while holding each of them, so that nobody resumes what goes."""
    for name in _family(store, run_id):
        lease = store.lease(name, f"pid {os.getpid()}")
        try:
            store.delete(name)
        finally:
            lease.release()
