"""What the inside asks of a store: runs, their journals, their lease, and blobs.

Stores are synchronous. A driver calls them inline and groups all that is due into one commit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Protocol

from flowstone.run.events import Event, Recorded
from flowstone.run.outcome import Outcome
from flowstone.run.record import RunRecord, RunRow, RunSummary


class Lease(Protocol):
    """The right to append to one run, held by this process and its guard until released or dead."""

    @property
    def fd(self) -> int | None:
        """The descriptor of the lock, for a guard process to keep open; None where there is none."""

    def release(self) -> None:
        """Give the run back; releasing twice does nothing."""


class RunQuery(Protocol):
    """Marker for `find`'s keyword arguments; see `Store.find`."""


class Store(Protocol):
    """Keeps runs. Every write is atomic and durable when the call returns.

    Order of calls for a run: `create` once; then, by the one driver that holds `lease`, `append`
    any number of times. `read`, `load`, `find` and `get_blob` may be called by anyone at any time.
    After a crash at any point a reader sees all events of every append that returned, all or none
    of one that did not, and nothing else.

    Errors: `UnknownRun`; `JournalConflict` when `expected` is not the last sequence number;
    `LeaseHeld`; `CorruptJournal`; `StoreError` with file and cause for a full disk, a read-only
    folder or a database that stays locked.
    """

    def create(self, record: RunRecord, summary: RunSummary) -> None:
        """Keep a new run with an empty journal. An id that exists already raises StoreError."""

    def load(self, run_id: str) -> RunRow:
        """The whole record of a run, its plan included, and its summary."""

    def read(self, run_id: str, after: int = 0) -> Iterator[Recorded]:
        """The run's events with a sequence number above `after`, in order."""

    def append(
        self,
        run_id: str,
        expected: int,
        events: Sequence[Event],
        summary: RunSummary,
        meanwhile: Callable[[], object] | None = None,
    ) -> int:
        """Add events behind sequence number `expected`; returns the new last number.

        Outcomes inside `AttemptEnded` events are kept as `record_outcome` keeps them. `meanwhile` is
        called once, when every reader sees the events and they outlive this process, whatever ends it;
        that they outlive the machine too is only promised when the call returns. It is not called when
        the events could not be added; what it raises is raised when the events are durable.
        """

    def record_outcome(self, run_id: str, unit: str, number: int, hash: str, outcome: Outcome) -> Outcome:
        """Keep the outcome of an attempt before it is sequenced; the first writer wins.

        Returns the outcome that stands. Used by units that run away from the driver.
        """

    def outcome(self, run_id: str, unit: str, number: int, hash: str) -> Outcome | None:
        """An outcome that `record_outcome` kept, sequenced or not."""

    def lease(self, run_id: str, holder: str, wait_ms: int = 0) -> Lease:
        """Take the run. A dead holder is taken over at once; a live one raises LeaseHeld.

        `wait_ms` is how long a holder is waited for that is dead but whose guard is still ending
        its commands. Holding is by an operating-system lock, never by a clock or a bare pid.
        """

    def driver_of(self, run_id: str) -> str | None:
        """Who holds the run's lease now, for people; None when nobody living does."""

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
        """Runs by filter, the newest first (by creation, then id). Records come without their plan.

        Child runs are left out, unless `children` asks for them too or `parent` for those of one run.
        """

    def resolve_id(self, prefix: str) -> str:
        """The id that equals `prefix`, or the only one that begins with it (8 characters or more).

        None: UnknownRun. Several: UsageError that lists them.
        """

    def events(
        self, *, run_id: str | None = None, after: int = 0, limit: int | None = None
    ) -> Iterator[tuple[int, str, Event]]:
        """Events of all runs (or one) as (offset, run id, event), by growing offset above `after`.

        `limit` keeps the most recent ones.
        """

    def put_blob(self, data: bytes) -> str:
        """Keep bytes; returns their SHA-256 as hex. Durable when the call returns."""

    def get_blob(self, digest: str) -> bytes:
        """The bytes of a digest; CorruptJournal when they are lost or altered."""

    def delete(self, run_id: str) -> None:
        """Forget a run with its journal."""

    def size(self, run_id: str) -> int:
        """About how many bytes deleting a run would free, its blobs not counted."""

    def sweep_blobs(self, *, dry_run: bool = False) -> tuple[int, int]:
        """Remove blobs that no journal names; returns how many, and their bytes.

        One that was put within the last hour stays: its event may be about to be appended.
        """

    def compact(self) -> None:
        """Give what deleted runs held back to the system, where nobody else is in the way."""

    def close(self) -> None:
        """Release files and connections; closing twice does nothing."""
