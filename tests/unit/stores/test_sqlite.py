from __future__ import annotations

import os
import sqlite3

import pytest

from flowstone.errors import CorruptJournal, StoreError
from flowstone.run.events import Status, StepClosed, StepOpened
from flowstone.run.outcome import Outcome
from flowstone.run.record import RunSummary
from flowstone.stores.sqlite.connection import Database
from flowstone.stores.sqlite.migrations import APPLICATION_ID, VERSION
from flowstone.stores.sqlite.store import SqliteStore
from flowstone.testing.store_contract import HASH, RUN, attempt, record


@pytest.fixture
def path(tmp_path):
    return str(tmp_path / "data" / "state.db")


@pytest.fixture
def store(path):
    store = SqliteStore.open(path)
    store.create(record(), RunSummary())
    yield store
    store.close()


def test_it_writes_ahead_and_each_commit_is_durable(store, path):
    with sqlite3.connect(path) as connection:
        assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)
        assert connection.execute("PRAGMA user_version").fetchone() == (VERSION,)
    connection.close()
    assert store._database.rows("PRAGMA synchronous") == [(2,)]


def test_opening_a_current_database_writes_nothing(store, path):
    store.close()
    before = os.stat(path)
    SqliteStore.open(path).close()
    after = os.stat(path)
    assert (before.st_mtime_ns, before.st_size) == (after.st_mtime_ns, after.st_size)


def test_a_database_of_the_first_version_is_brought_up_and_keeps_its_runs(store, path):
    store._database.execute("DROP INDEX runs_of_parent")
    store._database.execute("DROP TABLE task_runs")
    store._database.execute("PRAGMA user_version = 1")
    store.close()
    reader = SqliteStore.open(path, readonly=True)
    assert reader.load(RUN).record == record()
    reader.close()
    again = SqliteStore.open(path)
    assert again.load(RUN).record == record()
    again.close()


def test_nested_runs_are_found_by_an_index(store):
    steps = store._database.rows(
        "EXPLAIN QUERY PLAN SELECT header, body FROM runs JOIN summaries ON run = key WHERE parent_run = ?"
        " ORDER BY created_at DESC, id DESC LIMIT ?",
        ("r", -1),
    )
    told = " ".join(str(step) for step in steps)
    assert "runs_of_parent" in told
    assert "TEMP B-TREE" not in told


def test_an_empty_file_becomes_a_database(tmp_path):
    path = tmp_path / "state.db"
    path.touch()
    reader = SqliteStore.open(str(path), readonly=True)
    assert list(reader.find()) == []
    reader.close()
    assert path.stat().st_size == 0
    store = SqliteStore.open(str(path))
    store.create(record(), RunSummary())
    assert store.load(RUN).record == record()
    store.close()


def test_a_creation_that_was_cut_short_is_made_good(path):
    database = Database(path)
    database.execute("DROP TABLE events")
    for table in ("runs", "plans", "summaries", "outcomes"):
        database.execute(f"DROP TABLE {table}")
    database.execute("DROP TABLE task_runs")
    database.execute("PRAGMA user_version = 0")
    database.close()
    store = SqliteStore.open(path)
    store.create(record(), RunSummary())
    store.close()


@pytest.mark.parametrize("readonly", [False, True])
def test_a_newer_database_is_refused(store, path, readonly):
    store._database.execute(f"PRAGMA user_version = {VERSION + 1}")
    with pytest.raises(StoreError, match=r"state\.db: written by a newer version") as caught:
        SqliteStore.open(path, readonly=readonly)
    assert "upgrade" in caught.value.hint


@pytest.mark.parametrize("readonly", [False, True])
@pytest.mark.parametrize("version", [0, VERSION, VERSION + 1])
def test_a_database_of_another_program_is_left_alone(tmp_path, readonly, version):
    path = tmp_path / "state.db"
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE workflow_runs (id TEXT)")
        connection.execute(f"PRAGMA user_version = {version}")
    connection.close()
    before = path.read_bytes()
    with pytest.raises(StoreError, match="database of another program"):
        SqliteStore.open(str(path), readonly=readonly)
    assert path.read_bytes() == before
    assert [entry.name for entry in tmp_path.iterdir()] == ["state.db"]


@pytest.mark.parametrize("readonly", [False, True])
def test_a_file_that_is_no_database_is_named(tmp_path, readonly):
    path = tmp_path / "state.db"
    path.write_bytes(b"no database at all " * 400)
    with pytest.raises(CorruptJournal, match=r"state\.db: file is not a database"):
        SqliteStore.open(str(path), readonly=readonly)


def test_a_damaged_page_is_a_corrupt_journal(store, path):
    store.append(RUN, 0, [StepClosed("a", n, Status.SUCCEEDED, "x" * 900) for n in range(500)], RunSummary())
    store.close()
    with open(path, "r+b") as file:
        file.seek(8_192)
        file.write(os.urandom(os.path.getsize(path) - 8_192))
    damaged = SqliteStore.open(path)
    with pytest.raises(CorruptJournal):
        list(damaged.read(RUN))
    damaged.close()


@pytest.mark.parametrize("lost", [1, 2, 3])
def test_a_lost_event_is_noticed(store, lost):
    store.append(RUN, 0, [StepOpened("a", n) for n in range(3)], RunSummary())
    store._database.execute("DELETE FROM events WHERE seq = ?", (lost,))
    with pytest.raises(CorruptJournal, match=f"event {lost} of run {RUN} is lost"):
        list(store.read(RUN))


def test_a_lost_outcome_is_noticed(store):
    store.append(RUN, 0, attempt("a:0", 0, Outcome(value=1)), RunSummary())
    store._database.execute("DELETE FROM outcomes")
    with pytest.raises(CorruptJournal, match='unit "a:0" is lost'):
        list(store.read(RUN))


def test_an_outcome_is_stored_once(store):
    store.append(RUN, 0, attempt("a:0", 0, Outcome(value="needle")), RunSummary())
    assert store._database.rows("SELECT count(*) FROM events WHERE body LIKE '%needle%'") == [(0,)]
    assert store._database.rows("SELECT count(*) FROM outcomes WHERE body LIKE '%needle%'") == [(1,)]


def test_a_locked_database_is_named_and_nothing_is_lost(store, path):
    other = SqliteStore.open(path, busy_ms=30)
    holding = sqlite3.connect(path, isolation_level=None)
    holding.execute("BEGIN IMMEDIATE")
    with pytest.raises(StoreError, match=r"state\.db: stays locked") as caught:
        other.append(RUN, 0, [StepOpened("a", 1)], RunSummary())
    assert caught.value.code == "STATE_DB_CONTENDED"
    assert list(other.read(RUN)) == []
    holding.execute("ROLLBACK")
    assert other.append(RUN, 0, [StepOpened("a", 1)], RunSummary()) == 1
    other.close()
    holding.close()


def test_a_full_disk_is_named_and_the_store_goes_on_when_there_is_space(store):
    pages = store._database.rows("PRAGMA page_count")[0][0]
    store._database.execute(f"PRAGMA max_page_count = {pages + 2}")
    big = [StepClosed("a", 1, Status.SUCCEEDED, "x" * 100_000), *attempt("a:0", 0, Outcome())]
    with pytest.raises(StoreError, match=r"state\.db: database or disk is full") as caught:
        store.append(RUN, 0, big, RunSummary())
    assert "free some space" in caught.value.hint
    assert list(store.read(RUN)) == []
    assert store.outcome(RUN, "a:0", 0, HASH) is None
    store._database.execute("PRAGMA max_page_count = 100000")
    assert store.append(RUN, 0, big, RunSummary()) == 3


def test_a_list_reads_no_plan(store):
    store._database.execute("DROP TABLE plans")
    assert [row.record.id for row in store.find()] == [RUN]


def test_a_path_may_hold_what_means_something_in_an_address(tmp_path):
    path = tmp_path / "a?b#c%20d ü" / "state.db"
    store = SqliteStore.open(str(path))
    store.create(record(), RunSummary())
    store.close()
    assert path.exists()
    reader = SqliteStore.open(str(path), readonly=True)
    assert reader.load(RUN).record == record()
    reader.close()


def test_a_folder_name_that_is_no_text_is_refused_in_words(store):
    with pytest.raises(StoreError, match="cannot be stored"):
        store.create(record("run-2", cwd="/tmp/\udcff"), RunSummary())
    assert [row.record.id for row in store.find()] == [RUN]


def test_the_file_says_whose_it_is(store):
    assert store._database.rows("PRAGMA application_id") == [(APPLICATION_ID,)]


def test_a_log_with_room_in_it_reads_as_one_without(store, path, tmp_path):
    """Many commits get a log that is longer than what is in it, also for whoever finds it after a crash."""
    seq = 0
    for number in range(12):
        seq = store.append(RUN, seq, [StepOpened(f"s{number}", number)], RunSummary())
    assert os.path.getsize(f"{path}-wal") > 4_000_000
    found = tmp_path / "found"
    found.mkdir()
    for name in ("state.db", "state.db-wal"):
        (found / name).write_bytes((tmp_path / "data" / name).read_bytes())
    after_a_crash = SqliteStore.open(str(found / "state.db"))
    assert [entry.seq for entry in after_a_crash.read(RUN)] == list(range(1, 13))
    assert after_a_crash.append(RUN, seq, [StepOpened("s", 13)], RunSummary()) == 13
    after_a_crash.close()
    assert store.append(RUN, seq, [StepOpened("s", 13)], RunSummary()) == 13
