"""A store that dies at a chosen append, as a process does: for crash tests over any real store."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from enum import StrEnum
from typing import Any

from flowstone.ports.store import Lease, Store
from flowstone.run.events import Event, Recorded
from flowstone.run.outcome import Outcome
from flowstone.run.record import RunRecord, RunRow, RunSummary


class Crash(BaseException):
    """The process died here. No Exception, so that nothing but a test catches it."""


class When(StrEnum):
    BEFORE = "before"
    """The append did not happen."""
    BETWEEN = "between"
    """The append outlives the process, and what may start beside its sync was started; nobody was told."""
    AFTER = "after"
    """The append is durable, but nobody was told."""


class CrashingStore:
    """Wraps `store`; the `nth` append (from 1) raises Crash, and so does every call after it.

    Leases taken through it are given up by the crash, as the operating system does. The wrapped
    store stays open: a test goes on with it, or opens another on the same files.
    """

    def __init__(self, store: Store, nth: int, when: When) -> None:
        self.appends = 0
        self.crashed = False
        self._store = store
        self._nth = nth
        self._when = when
        self._leases: list[Lease] = []

    def append(
        self,
        run_id: str,
        expected: int,
        events: Sequence[Event],
        summary: RunSummary,
        meanwhile: Callable[[], object] | None = None,
    ) -> int:
        store = self._living()
        self.appends += 1
        if self.appends != self._nth:
            return store.append(run_id, expected, events, summary, meanwhile)
        if self._when is not When.BEFORE:
            store.append(run_id, expected, events, summary, meanwhile if self._when is When.BETWEEN else None)
        self._crash()
        raise Crash(f"{self._when} append {self._nth}")

    def create(self, record: RunRecord, summary: RunSummary) -> None:
        self._living().create(record, summary)

    def load(self, run_id: str) -> RunRow:
        return self._living().load(run_id)

    def read(self, run_id: str, after: int = 0) -> Iterator[Recorded]:
        return self._living().read(run_id, after)

    def record_outcome(self, run_id: str, unit: str, number: int, hash: str, outcome: Outcome) -> Outcome:
        return self._living().record_outcome(run_id, unit, number, hash, outcome)

    def outcome(self, run_id: str, unit: str, number: int, hash: str) -> Outcome | None:
        return self._living().outcome(run_id, unit, number, hash)

    def lease(self, run_id: str, holder: str, wait_ms: int = 0) -> Lease:
        lease = self._living().lease(run_id, holder, wait_ms)
        self._leases.append(lease)
        return lease

    def find(self, **filters: Any) -> Iterator[RunRow]:
        return self._living().find(**filters)

    def resolve_id(self, prefix: str) -> str:
        return self._living().resolve_id(prefix)

    def events(
        self, *, run_id: str | None = None, after: int = 0, limit: int | None = None
    ) -> Iterator[tuple[int, str, Event]]:
        return self._living().events(run_id=run_id, after=after, limit=limit)

    def put_blob(self, data: bytes) -> str:
        return self._living().put_blob(data)

    def get_blob(self, digest: str) -> bytes:
        return self._living().get_blob(digest)

    def delete(self, run_id: str) -> None:
        self._living().delete(run_id)

    def close(self) -> None:
        """Nothing to do: the wrapped store belongs to the test."""

    def __getattr__(self, name: str) -> Any:
        """What one kind of store offers beyond the port, such as `publish`."""
        return getattr(self._living(), name)

    def _living(self) -> Store:
        if self.crashed:
            raise Crash("the process is dead")
        return self._store

    def _crash(self) -> None:
        self.crashed = True
        for lease in self._leases:
            lease.release()
