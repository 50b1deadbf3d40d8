"""The contract of a store as tests: every sentence of `ports.store`, for any implementation.

Subclass `StoreContract` and give it a fixture `open_store`: a function that opens the store on the
same data each time it is called. A store in files subclasses `FileStoreContract` (its module) too.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from flowstone.errors import (
    CorruptJournal,
    JournalConflict,
    LeaseHeld,
    StoreError,
    UnknownRun,
    UsageError,
)
from flowstone.ports.store import Store
from flowstone.run.events import (
    AttemptEnded,
    AttemptStarted,
    DriverStarted,
    Event,
    Recorded,
    RunAbandoned,
    RunClosed,
    RunInterrupted,
    RunReopened,
    RunStatus,
    Status,
    StepClosed,
    StepOpened,
)
from flowstone.run.outcome import Outcome, Reason, failed
from flowstone.run.record import RunRecord, RunSummary

RUN = "run-00000001"
HASH = "a" * 64
OpenStore = Callable[[], Store]


def record(run_id: str = RUN, **fields: Any) -> RunRecord:
    """A run's record for tests, with the fields that matter to one."""
    values: dict[str, Any] = {
        "dialect": "akm",
        "ref": "local//workflows/ship",
        "title": "Ship",
        "scope": "/project",
        "cwd": "/project/app",
        "plan": '{"name":"ship"}',
        "plan_hash": "0" * 64,
        "created_at": 1_000,
        "params": {"n": 2**70, "ratio": 1.0, "text": "ä\0"},
    }
    return RunRecord(id=run_id, **{**values, **fields})


def one_of_each() -> list[Event]:
    """Every kind of event, with values that a careless encoder would change."""
    value = {"big": 2**70, "whole": 1.0, "minus": -0.0, "nul": "a\0b", "text": "日本 \u2028", "none": None}
    return [
        DriverStarted(at=1, driver="pid 1"),
        StepOpened("a", 2, count=2),
        AttemptStarted("a", "a:0", 3, HASH),
        AttemptEnded("a", "a:0", 4, Outcome(value=value, warnings=("w",), tokens=7)),
        StepClosed("a", 6, Status.FAILED, artifact=value, reason=Reason.TIMEOUT, error="late", detail=[1.0]),
        RunClosed(7, RunStatus.FAILED, outputs={"x": None}, error="late"),
        RunReopened(8, ("a",)),
        RunInterrupted(9, "SIGINT"),
        RunAbandoned(10),
    ]


def attempt(unit: str, number: int, outcome: Outcome, hash: str = HASH) -> list[Event]:
    """The two events of an attempt."""
    return [AttemptStarted("a", unit, 1, hash, number), AttemptEnded("a", unit, 2, outcome, number)]


class StoreContract:
    """What holds for every store."""

    @pytest.fixture
    def store(self, open_store: OpenStore) -> Store:
        store = open_store()
        store.create(record(), RunSummary())
        return store

    def test_a_new_run_has_its_record_and_an_empty_journal(self, store: Store) -> None:
        row = store.load(RUN)
        assert row.record == record()
        assert type(row.record.params["ratio"]) is float
        assert row.summary == RunSummary()
        assert list(store.read(RUN)) == []

    def test_every_record_field_comes_back(self, store: Store) -> None:
        full = record(
            "run-full",
            source_path="/p/x.md",
            source_digest="sha256:1",
            provenance=(("ORUN_FLOW_SOURCE_REF", "v1"),),
            parent_run=RUN,
            parent_unit="a:0",
            invocation_key="key",
            harness="h",
            session="s",
        )
        summary = RunSummary(RunStatus.HELD, "a", 5, 6, {"x": [1.0, None]})
        store.create(full, summary)
        assert store.load("run-full").record == full
        assert store.load("run-full").summary == summary

    def test_an_id_is_taken_once(self, store: Store) -> None:
        with pytest.raises(StoreError, match="exists already"):
            store.create(record(title="Other"), RunSummary())
        assert store.load(RUN).record.title == "Ship"

    @pytest.mark.parametrize("run_id", ["../x", "a/b", "..", "", "a\0b", "x" * 300, ".hidden"])
    def test_an_id_that_cannot_name_a_file_is_refused(self, store: Store, run_id: str) -> None:
        with pytest.raises(UsageError, match="cannot name a file"):
            store.create(record(run_id), RunSummary())
        with pytest.raises(UsageError, match="cannot name a file"):
            store.lease(run_id, "me")
        with pytest.raises(UnknownRun):
            store.load(run_id)

    def test_meanwhile_comes_once_the_events_are_there(self, store: Store, open_store: OpenStore) -> None:
        seen: list[int] = []

        def look() -> None:
            seen.append(len(list(open_store().read(RUN))))

        for number in range(3):
            assert store.append(RUN, number, [StepOpened("a", 1)], RunSummary(), look) == number + 1
        assert seen == [1, 2, 3]
        with pytest.raises(JournalConflict):
            store.append(RUN, 0, [StepOpened("a", 1)], RunSummary(), look)
        assert seen == [1, 2, 3]

    def test_what_meanwhile_raises_takes_no_event_back(self, store: Store) -> None:
        def broken() -> None:
            raise LookupError("nothing to start it with")

        with pytest.raises(LookupError):
            store.append(RUN, 0, [StepOpened("a", 1)], RunSummary(), broken)
        assert [entry.event for entry in store.read(RUN)] == [StepOpened("a", 1)]
        assert store.append(RUN, 1, [StepOpened("b", 1)], RunSummary()) == 2

    def test_an_unknown_run_is_named(self, store: Store) -> None:
        calls: list[Callable[[], object]] = [
            lambda: store.load("nobody"),
            lambda: list(store.read("nobody")),
            lambda: store.append("nobody", 0, [], RunSummary()),
            lambda: store.record_outcome("nobody", "a:0", 0, HASH, Outcome()),
            lambda: store.outcome("nobody", "a:0", 0, HASH),
            lambda: list(store.events(run_id="nobody")),
            lambda: store.delete("nobody"),
        ]
        for call in calls:
            with pytest.raises(UnknownRun, match="nobody"):
                call()

    def test_events_come_back_as_they_were_appended(self, store: Store) -> None:
        events = one_of_each()
        assert store.append(RUN, 0, events, RunSummary()) == len(events)
        assert repr(list(store.read(RUN))) == repr([Recorded(n, e) for n, e in enumerate(events, 1)])

    def test_reading_goes_on_behind_a_number(self, store: Store) -> None:
        store.append(RUN, 0, one_of_each(), RunSummary())
        assert [found.seq for found in store.read(RUN, after=6)] == [7, 8, 9]
        assert list(store.read(RUN, after=10)) == []

    def test_a_long_journal_comes_back_in_order(self, store: Store) -> None:
        events = [StepOpened("a", at) for at in range(2_500)]
        store.append(RUN, 0, events, RunSummary())
        assert [found.event for found in store.read(RUN)] == events
        assert [event for _, _, event in store.events(run_id=RUN)] == events
        assert [event for _, _, event in store.events()] == events

    def test_an_append_writes_the_summary_with_the_events(self, store: Store) -> None:
        summary = RunSummary(RunStatus.SUCCEEDED, None, 9, 9, {"answer": 1.0})
        store.append(RUN, 0, [RunClosed(9, RunStatus.SUCCEEDED)], summary)
        assert store.load(RUN).summary == summary

    def test_an_append_may_hold_a_summary_only(self, store: Store) -> None:
        assert store.append(RUN, 0, [], RunSummary(updated_at=5)) == 0
        assert store.load(RUN).summary.updated_at == 5

    @pytest.mark.parametrize("expected", [0, 2, 99])
    def test_only_one_of_two_drivers_can_append(self, store: Store, expected: int) -> None:
        store.append(RUN, 0, [DriverStarted(1, "one")], RunSummary(updated_at=1))
        with pytest.raises(JournalConflict, match=RUN):
            store.append(RUN, expected, attempt("a:0", 0, Outcome()), RunSummary(updated_at=2))
        assert [found.event for found in store.read(RUN)] == [DriverStarted(1, "one")]
        assert store.load(RUN).summary.updated_at == 1
        assert store.outcome(RUN, "a:0", 0, HASH) is None

    def test_a_driver_sees_that_another_went_on(self, store: Store, open_store: OpenStore) -> None:
        other = open_store()
        store.append(RUN, 0, [DriverStarted(1, "one")], RunSummary())
        other.append(RUN, 1, [DriverStarted(2, "two")], RunSummary())
        with pytest.raises(JournalConflict):
            store.append(RUN, 1, [DriverStarted(3, "one")], RunSummary())
        assert store.append(RUN, 2, [DriverStarted(4, "one")], RunSummary()) == 3

    @pytest.mark.parametrize("bad", [float("nan"), float("inf"), object(), "\ud800"])
    def test_an_append_that_cannot_be_written_leaves_nothing(self, store: Store, bad: object) -> None:
        with pytest.raises(StoreError):
            store.append(RUN, 0, [DriverStarted(1, "one"), StepClosed("a", 1, Status.FAILED, bad)], RunSummary())
        assert list(store.read(RUN)) == []
        assert store.append(RUN, 0, [DriverStarted(1, "one")], RunSummary()) == 1

    def test_the_outcome_of_an_ended_attempt_is_kept(self, store: Store) -> None:
        outcome = failed(Reason.NON_ZERO_EXIT, "exited 3")
        store.append(RUN, 0, attempt("a:0", 1, outcome), RunSummary())
        assert store.outcome(RUN, "a:0", 1, HASH) == outcome
        assert store.outcome(RUN, "a:0", 0, HASH) is None
        assert store.outcome(RUN, "a:0", 1, "b" * 64) is None

    def test_the_first_outcome_recorded_stands(self, store: Store) -> None:
        first, second = Outcome(value=1.0), Outcome(value=2)
        assert store.record_outcome(RUN, "a:0", 0, HASH, first) == first
        assert store.record_outcome(RUN, "a:0", 0, HASH, second) == first
        assert store.outcome(RUN, "a:0", 0, HASH) == first
        assert list(store.read(RUN)) == []

    def test_a_recorded_outcome_enters_the_sequence(self, store: Store, open_store: OpenStore) -> None:
        standing = open_store().record_outcome(RUN, "a:0", 0, HASH, Outcome(value="remote"))
        store.append(RUN, 0, attempt("a:0", 0, standing), RunSummary())
        assert [found.event for found in store.read(RUN)] == attempt("a:0", 0, standing)

    def test_the_journal_says_how_each_attempt_ended(self, store: Store) -> None:
        """A reopened run may repeat an attempt; the journal has both, the look-up the first."""
        bad, good = failed(Reason.TIMEOUT, "late"), Outcome(value="ok")
        store.append(RUN, 0, attempt("a:0", 0, bad), RunSummary())
        store.append(RUN, 2, [RunReopened(3, ("a",)), *attempt("a:0", 0, good)], RunSummary())
        ends = [found.event for found in store.read(RUN) if isinstance(found.event, AttemptEnded)]
        assert [end.outcome for end in ends] == [bad, good]
        assert store.outcome(RUN, "a:0", 0, HASH) == bad

    def test_an_attempt_started_by_another_is_ended_here(self, store: Store, open_store: OpenStore) -> None:
        start, end = attempt("a:0", 0, Outcome(value="ok"))
        store.append(RUN, 0, [start, AttemptStarted("a", "a:1", 1, "c" * 64)], RunSummary())
        open_store().append(RUN, 2, [end], RunSummary())
        assert store.outcome(RUN, "a:0", 0, HASH) == Outcome(value="ok")

    def test_who_drives_a_run_is_told_while_it_lasts(self, store: Store) -> None:
        assert store.driver_of(RUN) is None
        lease = store.lease(RUN, "me")
        assert store.driver_of(RUN)
        lease.release()
        assert store.driver_of(RUN) is None

    def test_a_lease_is_held_until_it_is_released(self, store: Store, open_store: OpenStore) -> None:
        lease = store.lease(RUN, "first")
        with pytest.raises(LeaseHeld, match=RUN) as caught:
            open_store().lease(RUN, "second")
        assert caught.value.holder
        store.lease("run-other", "first").release()
        lease.release()
        lease.release()
        again = open_store().lease(RUN, "second")
        lease.release()
        with pytest.raises(LeaseHeld):
            store.lease(RUN, "third")
        again.release()

    def test_runs_are_found_newest_first(self, store: Store) -> None:
        for run_id, at in (("run-c", 5), ("run-b", 5), ("run-d", 1)):
            store.create(record(run_id, created_at=at), RunSummary())
        found = list(store.find())
        assert [row.record.id for row in found] == [RUN, "run-c", "run-b", "run-d"]
        assert {row.record.plan for row in found} == {""}
        assert [row.record.id for row in store.find(limit=2)] == [RUN, "run-c"]

    def test_runs_are_found_by_filter(self, store: Store) -> None:
        store.create(record("run-scope", scope="/other"), RunSummary())
        store.create(record("run-ref", ref="local//workflows/other"), RunSummary())
        store.create(record("run-cwd", cwd="/elsewhere"), RunSummary())
        store.create(record("run-done", cwd="/elsewhere"), RunSummary(status=RunStatus.SUCCEEDED))
        store.create(record("run-child", cwd="/elsewhere", parent_run=RUN), RunSummary())
        ids = [
            {row.record.id for row in found}
            for found in (
                store.find(scope="/other"),
                store.find(ref="local//workflows/other"),
                store.find(cwd="/elsewhere"),
                store.find(cwd="/elsewhere", active_only=True),
                store.find(cwd="/elsewhere", active_only=True, children=True),
                store.find(cwd="/elsewhere", scope="/other"),
                store.find(parent=RUN),
                store.find(parent="run-scope", children=True),
            )
        ]
        assert ids[:3] == [{"run-scope"}, {"run-ref"}, {"run-cwd", "run-done"}]
        assert ids[3:] == [{"run-cwd"}, {"run-cwd", "run-child"}, set(), {"run-child"}, set()]

    def test_only_active_runs_are_active(self, store: Store) -> None:
        for status in RunStatus:
            store.create(record(f"run-{status}"), RunSummary(status=status))
        assert {row.record.id for row in store.find(active_only=True)} == {RUN, "run-active"}

    def test_an_id_is_resolved_by_its_beginning(self, store: Store) -> None:
        store.create(record("run-00000002"), RunSummary())
        store.create(record("run-0000"), RunSummary())
        assert store.resolve_id(RUN) == RUN
        assert store.resolve_id("run-0000") == "run-0000"
        assert store.resolve_id("run-00000002"[:12]) == "run-00000002"
        with pytest.raises(UsageError, match=f"{RUN}, run-00000002"):
            store.resolve_id("run-00000")
        for unknown in ("run-9999999", "run-000", "", "run-0000\udc80", "run_0000%"):
            with pytest.raises(UnknownRun):
                store.resolve_id(unknown)

    def test_events_of_all_runs_share_one_sequence(self, store: Store) -> None:
        store.create(record("run-two"), RunSummary())
        store.append(RUN, 0, [StepOpened("a", 1)], RunSummary())
        store.append("run-two", 0, attempt("b:0", 0, Outcome(value=1.0)), RunSummary())
        store.append(RUN, 1, [StepOpened("c", 3)], RunSummary())
        found = list(store.events())
        assert [run_id for _, run_id, _ in found] == [RUN, "run-two", "run-two", RUN]
        offsets = [offset for offset, _, _ in found]
        assert offsets == sorted(set(offsets))
        assert list(store.events(after=offsets[1])) == found[2:]
        assert list(store.events(limit=2)) == found[2:]
        assert list(store.events(after=offsets[2], limit=2)) == found[3:]
        assert list(store.events(limit=0)) == []
        assert list(store.events(limit=99)) == found
        assert list(store.events(run_id=RUN)) == [found[0], found[3]]
        assert list(store.events(run_id=RUN, after=offsets[0])) == [found[3]]
        assert list(store.events(run_id="run-two", limit=1)) == [found[2]]

    def test_blobs_are_kept_by_their_digest(self, store: Store, open_store: OpenStore) -> None:
        data = bytes(range(256)) * 5_000
        digest = store.put_blob(data)
        assert len(digest) == 64
        assert store.put_blob(data) == digest
        assert open_store().get_blob(digest) == data
        assert store.get_blob(store.put_blob(b"")) == b""

    @pytest.mark.parametrize("digest", ["0" * 64, "../../etc/passwd", "", "A" * 64])
    def test_a_blob_that_is_not_there_is_a_corrupt_journal(self, store: Store, digest: str) -> None:
        with pytest.raises(CorruptJournal):
            store.get_blob(digest)

    def test_a_deleted_run_is_forgotten(self, store: Store) -> None:
        store.create(record("run-two"), RunSummary())
        store.append("run-two", 0, [StepOpened("a", 1)], RunSummary())
        store.append(RUN, 0, attempt("a:0", 0, Outcome()), RunSummary())
        newest = max(offset for offset, _, _ in store.events())
        store.delete(RUN)
        with pytest.raises(UnknownRun):
            store.load(RUN)
        assert [row.record.id for row in store.find()] == ["run-two"]
        assert [run_id for _, run_id, _ in store.events()] == ["run-two"]
        store.create(record(), RunSummary())
        assert list(store.read(RUN)) == []
        assert store.outcome(RUN, "a:0", 0, HASH) is None
        store.append(RUN, 0, [StepOpened("b", 1)], RunSummary())
        assert max(offset for offset, _, _ in store.events()) > newest

    def test_a_reader_and_a_writer_do_not_disturb_each_other(self, store: Store) -> None:
        store.append(RUN, 0, [StepOpened("a", 1), StepOpened("b", 1)], RunSummary())
        reading = store.read(RUN)
        assert next(reading).seq == 1
        store.append(RUN, 2, [StepOpened("c", 1)], RunSummary())
        assert next(reading).seq == 2

    def test_closing_twice_does_nothing(self, store: Store) -> None:
        store.close()
        store.close()
