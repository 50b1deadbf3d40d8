"""A store in memory: for tests, and for runs that nobody needs to resume."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import msgspec

from flowstone.errors import CorruptJournal, LeaseHeld, StoreError
from flowstone.run.events import AttemptEnded, AttemptStarted, Event, Recorded, RunStatus
from flowstone.run.outcome import Outcome
from flowstone.run.record import RunRecord, RunRow, RunSummary
from flowstone.stores.codec import blobs_named, decode_event, decode_outcome, encode_event, encode_outcome
from flowstone.stores.files import check_run_id
from flowstone.stores.lookup import conflict, pick_id, unknown_run
from flowstone.values import sha256_hex


class MemoryStore:
    """Keeps everything as the text that other stores write, so that nothing is shared with callers."""

    def __init__(self) -> None:
        self._runs: dict[str, _Run] = {}
        self._log: list[tuple[int, str, str]] = []
        self._offset = 0
        self._blobs: dict[str, bytes] = {}
        self._leases: dict[str, MemoryLease] = {}

    def create(self, record: RunRecord, summary: RunSummary) -> None:
        if check_run_id(record.id) in self._runs:
            raise StoreError(f"the run {record.id} exists already")
        self._runs[record.id] = _Run(record, summary)

    def load(self, run_id: str) -> RunRow:
        run = self._run(run_id)
        return RunRow(run.record, run.summary)

    def read(self, run_id: str, after: int = 0) -> Iterator[Recorded]:
        bodies = self._run(run_id).bodies
        first = max(after, 0)
        return (Recorded(seq, decode_event(body)) for seq, body in enumerate(bodies[first:], first + 1))

    def append(
        self,
        run_id: str,
        expected: int,
        events: Sequence[Event],
        summary: RunSummary,
        meanwhile: Callable[[], object] | None = None,
    ) -> int:
        run = self._run(run_id)
        if len(run.bodies) != expected:
            raise conflict(run_id, expected, len(run.bodies))
        bodies = [encode_event(event) for event in events]
        for event, body in zip(events, bodies, strict=True):
            self._offset += 1
            self._log.append((self._offset, run_id, body))
            run.keep(event)
        run.bodies.extend(bodies)
        run.summary = summary
        if meanwhile is not None:
            meanwhile()
        return expected + len(bodies)

    def record_outcome(self, run_id: str, unit: str, number: int, hash: str, outcome: Outcome) -> Outcome:
        body = encode_outcome(outcome)
        return decode_outcome(self._run(run_id).outcomes.setdefault((unit, number, hash), body))

    def outcome(self, run_id: str, unit: str, number: int, hash: str) -> Outcome | None:
        body = self._run(run_id).outcomes.get((unit, number, hash))
        return None if body is None else decode_outcome(body)

    def lease(self, run_id: str, holder: str, wait_ms: int = 0) -> MemoryLease:
        held = self._leases.get(check_run_id(run_id))
        if held is not None:
            raise LeaseHeld(f"run {run_id} is held by {held.holder}", holder=held.holder)
        lease = self._leases[run_id] = MemoryLease(self._leases, run_id, holder)
        return lease

    def driver_of(self, run_id: str) -> str | None:
        held = self._leases.get(check_run_id(run_id))
        return None if held is None else held.holder

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
        found = [
            run
            for run in self._runs.values()
            if scope in {None, run.record.scope}
            and ref in {None, run.record.ref}
            and cwd in {None, run.record.cwd}
            and (run.summary.status is RunStatus.ACTIVE or not active_only)
            and (run.record.parent_run is None or children or parent)
            and parent in {None, run.record.parent_run}
        ]
        found.sort(key=lambda run: (run.record.created_at, run.record.id), reverse=True)
        return iter([run.row() for run in found[:limit]])

    def resolve_id(self, prefix: str) -> str:
        return pick_id(prefix, sorted(run_id for run_id in self._runs if run_id.startswith(prefix)))

    def events(
        self, *, run_id: str | None = None, after: int = 0, limit: int | None = None
    ) -> Iterator[tuple[int, str, Event]]:
        if run_id is not None:
            self._run(run_id)
        rows = [row for row in self._log if row[0] > after and run_id in {None, row[1]}]
        if limit is not None:
            rows = rows[len(rows) - min(limit, len(rows)) :]
        return ((offset, run, decode_event(body)) for offset, run, body in rows)

    def put_blob(self, data: bytes) -> str:
        digest = sha256_hex(data)
        self._blobs[digest] = bytes(data)
        return digest

    def get_blob(self, digest: str) -> bytes:
        if digest not in self._blobs:
            raise CorruptJournal(f"the blob {digest[:80]} is lost")
        return self._blobs[digest]

    def delete(self, run_id: str) -> None:
        self._run(run_id)
        del self._runs[run_id]
        self._log = [row for row in self._log if row[1] != run_id]

    def size(self, run_id: str) -> int:
        run = self._run(run_id)
        return len(run.record.plan) + sum(map(len, run.bodies))

    def sweep_blobs(self, *, dry_run: bool = False) -> tuple[int, int]:
        named = {found for run in self._runs.values() for body in run.bodies for found in blobs_named(body)}
        lost = {digest: data for digest, data in self._blobs.items() if digest not in named}
        if not dry_run:
            self._blobs = {digest: data for digest, data in self._blobs.items() if digest in named}
        return len(lost), sum(map(len, lost.values()))

    def compact(self) -> None:
        """Memory is given back by itself."""

    def close(self) -> None:
        """Nothing is open; what was kept can still be read."""

    def _run(self, run_id: str) -> _Run:
        run = self._runs.get(run_id)
        if run is None:
            raise unknown_run(run_id)
        return run


class MemoryLease:
    """A lease among the users of one MemoryStore."""

    def __init__(self, leases: dict[str, MemoryLease], run_id: str, holder: str) -> None:
        self.holder = holder
        self._leases = leases
        self._run_id = run_id

    @property
    def fd(self) -> int | None:
        return None

    def release(self) -> None:
        if self._leases.get(self._run_id) is self:
            del self._leases[self._run_id]


class _Run:
    def __init__(self, record: RunRecord, summary: RunSummary) -> None:
        self.record = record
        self.summary = summary
        self.bodies: list[str] = []
        self.outcomes: dict[tuple[str, int, str], str] = {}
        self.started: dict[tuple[str, int], str] = {}

    def keep(self, event: Event) -> None:
        """Keep the outcome of an attempt under the input hash that its start named."""
        if isinstance(event, AttemptStarted):
            self.started[event.unit, event.number] = event.hash
        elif isinstance(event, AttemptEnded):
            key = (event.unit, event.number, self.started.get((event.unit, event.number), ""))
            self.outcomes.setdefault(key, encode_outcome(event.outcome))

    def row(self) -> RunRow:
        return RunRow(msgspec.structs.replace(self.record, plan=""), self.summary)
