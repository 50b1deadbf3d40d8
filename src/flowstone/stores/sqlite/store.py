"""The store of a file: runs and journals in one SQLite database, blobs and locks in folders beside it."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from flowstone.errors import CorruptJournal, StoreError
from flowstone.run.events import AttemptEnded, AttemptStarted, Event, Recorded, RunStatus
from flowstone.run.outcome import Outcome
from flowstone.run.record import RunRecord, RunRow, RunSummary
from flowstone.stores import codec
from flowstone.stores.blobs import BlobFolder
from flowstone.stores.files import check_run_id
from flowstone.stores.lease import FileLease, living_holder, take_lease
from flowstone.stores.lookup import conflict, pick_id, unknown_run
from flowstone.stores.sqlite.connection import BUSY_MS, Database

_PAGE = 1_000
"""Events that are read at a time: no reader holds a snapshot of the log for longer."""


class SqliteStore:
    """Implements `ports.store.Store`. An object belongs to the thread that opened it."""

    def __init__(self, path: str, database: Database) -> None:
        root = os.path.dirname(os.path.abspath(path))
        self._database = database
        self._blobs = BlobFolder(os.path.join(root, "blobs"))
        self._locks = os.path.join(root, "locks")
        self._journals: dict[str, _Journal] = {}

    @classmethod
    def open(cls, path: str, *, readonly: bool = False, busy_ms: int = BUSY_MS) -> SqliteStore:
        """Open the database at `path`, made if missing; `readonly`, a missing one reads as empty."""
        return cls(path, Database(path, readonly=readonly, busy_ms=busy_ms))

    def create(self, record: RunRecord, summary: RunSummary) -> None:
        check_run_id(record.id)
        header, body = codec.encode_header(record), codec.encode_summary(summary)
        with self._database.transaction():
            made = self._database.execute(
                "INSERT INTO runs (id, scope, ref, cwd, parent_run, created_at, header)"
                " VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING",
                (
                    record.id,
                    record.scope,
                    record.ref,
                    record.cwd,
                    record.parent_run,
                    record.created_at,
                    header,
                ),
            )
            if not made.rowcount:
                raise StoreError(f"the run {record.id} exists already")
            run = made.lastrowid
            self._database.execute("INSERT INTO plans VALUES (?, ?)", (run, record.plan))
            self._database.execute("INSERT INTO summaries VALUES (?, 0, ?, ?)", (run, summary.status.value, body))

    def load(self, run_id: str) -> RunRow:
        rows = self._database.rows(
            "SELECT header, s.body, p.body FROM runs JOIN summaries s ON s.run = key"
            " JOIN plans p ON p.run = key WHERE id = ?",
            (run_id,),
        )
        if not rows:
            raise unknown_run(run_id)
        return codec.decode_row(*rows[0])

    def read(self, run_id: str, after: int = 0) -> Iterator[Recorded]:
        run, last = self._tail(run_id)
        return self._read(run_id, run, max(after, 0), last)

    def append(
        self,
        run_id: str,
        expected: int,
        events: Sequence[Event],
        summary: RunSummary,
        meanwhile: Callable[[], object] | None = None,
    ) -> int:
        body = codec.encode_summary(summary)
        with self._database.transaction(meanwhile):
            journal = self._journal(run_id, expected)
            journal.seq += len(events)
            moved = self._database.execute(
                "UPDATE summaries SET last_seq = ?, status = ?, body = ? WHERE run = ? AND last_seq = ?",
                (journal.seq, summary.status.value, body, journal.run, expected),
            )
            if not moved.rowcount:
                raise conflict(run_id, expected, self._tail(run_id)[1])
            self._database.executemany(
                "INSERT INTO events (run, seq, kind, outcome, body) VALUES (?, ?, ?, ?, ?)",
                [self._event_row(journal, seq, event) for seq, event in enumerate(events, expected + 1)],
            )
        if summary.status is RunStatus.ACTIVE:
            self._journals[run_id] = journal
        return journal.seq

    def record_outcome(self, run_id: str, unit: str, number: int, hash: str, outcome: Outcome) -> Outcome:
        with self._database.transaction():
            run, _ = self._tail(run_id)
            _, standing = self._keep_outcome((run, unit, number, hash), codec.encode_outcome(outcome))
        return codec.decode_outcome(standing)

    def outcome(self, run_id: str, unit: str, number: int, hash: str) -> Outcome | None:
        run, _ = self._tail(run_id)
        rows = self._database.rows(
            "SELECT body FROM outcomes WHERE run = ? AND unit = ? AND number = ? AND hash = ?",
            (run, unit, number, hash),
        )
        return codec.decode_outcome(rows[0][0]) if rows else None

    def lease(self, run_id: str, holder: str, wait_ms: int = 0) -> FileLease:
        self._database.check_writable()
        return take_lease(self._locks, run_id, holder, wait_ms)

    def driver_of(self, run_id: str) -> str | None:
        return living_holder(self._locks, run_id)

    def find(
        self,
        *,
        scope: str | None = None,
        ref: str | None = None,
        cwd: str | None = None,
        active_only: bool = False,
        children: bool = False,
        parent: str | None = None,
        limit: int | None = None,
    ) -> Iterator[RunRow]:
        filters = [("scope = ?", scope), ("ref = ?", ref), ("cwd = ?", cwd), ("parent_run = ?", parent)]
        if active_only:
            filters.append(("status = ?", RunStatus.ACTIVE.value))
        wanted = [(text, value) for text, value in filters if value is not None]
        conditions = " AND ".join([text for text, _ in wanted] + ([] if children or parent else ["parent_run IS NULL"]))
        rows = self._database.rows(
            f"SELECT header, body FROM runs JOIN summaries ON run = key WHERE {conditions or 'TRUE'}"
            " ORDER BY created_at DESC, id DESC LIMIT ?",
            (*(value for _, value in wanted), -1 if limit is None else limit),
        )
        return (codec.decode_row(header, summary) for header, summary in rows)

    def resolve_id(self, prefix: str) -> str:
        # What is typed may hold bytes that are no text: then it names no run.
        prefix = prefix.encode("utf-8", "replace").decode()
        rows = self._database.rows(
            "SELECT id FROM runs WHERE id >= ? AND id < ? ORDER BY id LIMIT 100",
            (prefix, prefix + "\U0010ffff"),
        )
        return pick_id(prefix, [row[0] for row in rows])

    def events(
        self, *, run_id: str | None = None, after: int = 0, limit: int | None = None
    ) -> Iterator[tuple[int, str, Event]]:
        run = None if run_id is None else self._tail(run_id)[0]
        return self._events(run, self._floor(run, after, limit))

    def put_blob(self, data: bytes) -> str:
        self._database.check_writable()
        return self._blobs.put(data)

    def get_blob(self, digest: str) -> bytes:
        return self._blobs.get(digest)

    def delete(self, run_id: str) -> None:
        """Forget a run with its journal. Blobs stay: other runs may have the same bytes."""
        with self._database.transaction():
            run, _ = self._tail(run_id)
            # The newest event leaves a trace, so that no offset that a reader has seen is given out again.
            self._database.execute(
                "UPDATE events SET run = 0, seq = position, kind = '', outcome = NULL, body = ''"
                " WHERE run = ? AND position = (SELECT max(position) FROM events)",
                (run,),
            )
            self._database.execute("DELETE FROM runs WHERE key = ?", (run,))
            for table in ("plans", "summaries", "outcomes", "events"):
                self._database.execute(f"DELETE FROM {table} WHERE run = ?", (run,))
        self._journals.pop(run_id, None)

    def size(self, run_id: str) -> int:
        run, _ = self._tail(run_id)
        rows = self._database.rows(
            "SELECT (SELECT coalesce(sum(length(body)), 0) FROM plans WHERE run = ?1)"
            " + (SELECT coalesce(sum(length(body)), 0) FROM events WHERE run = ?1)"
            " + (SELECT coalesce(sum(length(body)), 0) FROM outcomes WHERE run = ?1)",
            (run,),
        )
        return int(rows[0][0])

    def sweep_blobs(self, *, dry_run: bool = False) -> tuple[int, int]:
        self._database.check_writable()
        named: set[str] = set()
        for table in ("events", "outcomes"):
            for (body,) in self._database.execute(f'SELECT body FROM {table} WHERE instr(body, \'"blob":"\')'):
                named.update(codec.blobs_named(body))
        return self._blobs.sweep(named.__contains__, dry_run=dry_run)

    def compact(self) -> None:
        """A log in use is not reset: with a run under way, the space is left to runs to come."""
        if not self._database.rows("SELECT 1 FROM summaries WHERE status = ? LIMIT 1", (RunStatus.ACTIVE.value,)):
            self._database.vacuum()

    def close(self) -> None:
        self._database.close()

    def _tail(self, run_id: str) -> tuple[int, int]:
        """The run's key and its last sequence number."""
        rows = self._database.rows("SELECT key, last_seq FROM runs JOIN summaries ON run = key WHERE id = ?", (run_id,))
        if not rows:
            raise unknown_run(run_id)
        return rows[0][0], rows[0][1]

    def _read(self, run_id: str, run: int, after: int, last: int) -> Iterator[Recorded]:
        seq, page = after, _PAGE
        while page == _PAGE:
            rows = self._database.rows(
                "SELECT seq, e.body, o.body FROM events e LEFT JOIN outcomes o ON o.id = e.outcome"
                " WHERE e.run = ? AND seq > ? ORDER BY seq LIMIT ?",
                (run, seq, _PAGE),
            )
            page = len(rows)
            for number, body, outcome in rows:
                seq += 1
                if number != seq:
                    raise self._gap(run_id, seq)
                yield Recorded(seq, codec.decode_event(body, outcome))
        if seq < last:
            raise self._gap(run_id, seq + 1)

    def _gap(self, run_id: str, seq: int) -> CorruptJournal:
        return CorruptJournal(f"{self._database.path}: event {seq} of run {run_id} is lost")

    def _journal(self, run_id: str, expected: int) -> _Journal:
        """What this object knows of the journal, afresh if it did not write the last event itself."""
        journal = self._journals.pop(run_id, None)
        if journal is not None and journal.seq == expected:
            return journal
        return _Journal(self._tail(run_id)[0], expected)

    def _event_row(self, journal: _Journal, seq: int, event: Event) -> tuple[Any, ...]:
        run, kind = journal.run, codec.kind_of(event)
        if isinstance(event, AttemptStarted):
            journal.hashes[event.unit, event.number] = event.hash
        if not isinstance(event, AttemptEnded):
            return run, seq, kind, None, codec.encode_event(event)
        hash = journal.hashes.pop((event.unit, event.number), None)
        if hash is None:
            hash = self._hash_of(run, event)
        body = codec.encode_outcome(event.outcome)
        key, standing = self._keep_outcome((run, event.unit, event.number, hash), body)
        if standing == body:
            return run, seq, kind, key, codec.encode_end(event)
        # Of a reopened run: the journal says how this attempt ended, whatever stands for the first.
        return run, seq, kind, None, codec.encode_event(event)

    def _hash_of(self, run: int, event: AttemptEnded) -> str:
        """The input hash that the attempt's start named in an append of another process."""
        rows = self._database.execute(
            "SELECT body FROM events WHERE run = ? AND kind = 'attempt-started' ORDER BY seq DESC", (run,)
        )
        for (body,) in rows:
            start = codec.decode_event(body)
            if isinstance(start, AttemptStarted) and (start.unit, start.number) == (event.unit, event.number):
                rows.close()
                return start.hash
        return ""

    def _keep_outcome(self, key: tuple[int, str, int, str], body: str) -> tuple[int, str]:
        """Keep an outcome unless one stands; returns the row and text of the one that does."""
        made = self._database.execute(
            "INSERT INTO outcomes (run, unit, number, hash, body) VALUES (?, ?, ?, ?, ?) ON CONFLICT DO NOTHING",
            (*key, body),
        )
        if made.rowcount:
            return made.lastrowid or 0, body
        row = self._database.execute(
            "SELECT id, body FROM outcomes WHERE run = ? AND unit = ? AND number = ? AND hash = ?", key
        ).fetchone()
        return row[0], row[1]

    def _floor(self, run: int | None, after: int, limit: int | None) -> int:
        """The offset above which at most `limit` events are left."""
        if limit is None:
            return after
        chosen, arguments = _of_run(run)
        rows = self._database.rows(
            f"SELECT position FROM events WHERE {chosen} AND position > ? ORDER BY position DESC LIMIT 1 OFFSET ?",
            (*arguments, after, max(limit, 0)),
        )
        return rows[0][0] if rows else after

    def _events(self, run: int | None, after: int) -> Iterator[tuple[int, str, Event]]:
        chosen, arguments = _of_run(run)
        # In one run both grow together, and only the sequence number has an index.
        order, mark, page = ("position", after, _PAGE) if run is None else ("seq", 0, _PAGE)
        while page == _PAGE:
            rows = self._database.rows(
                f"SELECT {order}, position, runs.id, events.body, outcomes.body FROM events"
                " JOIN runs ON key = events.run LEFT JOIN outcomes ON outcomes.id = events.outcome"
                f" WHERE {chosen} AND {order} > ? AND position > ? ORDER BY {order} LIMIT ?",
                (*arguments, mark, after, _PAGE),
            )
            page = len(rows)
            for _, position, run_id, body, outcome in rows:
                yield position, run_id, codec.decode_event(body, outcome)
            mark = rows[-1][0] if rows else mark


def _of_run(run: int | None) -> tuple[str, tuple[int, ...]]:
    """The condition that picks events of one run, or those of all that were not deleted."""
    return ("events.run <> 0", ()) if run is None else ("events.run = ?", (run,))


class _Journal:
    """A run's key, its last sequence number, and the input hashes of attempts that have started."""

    __slots__ = ("hashes", "run", "seq")

    def __init__(self, run: int, seq: int) -> None:
        self.run = run
        self.seq = seq
        self.hashes: dict[tuple[str, int], str] = {}
