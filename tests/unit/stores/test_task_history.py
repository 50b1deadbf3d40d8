"""The history of tasks: kept, replaced, the newest first, and empty where no table is yet."""

from __future__ import annotations

import msgspec
import pytest

from flowstone.errors import CorruptJournal
from flowstone.ports.history import TaskRun
from flowstone.stores.sqlite.connection import Database
from flowstone.stores.sqlite.tasks import SqliteTaskHistory


@pytest.fixture
def path(tmp_path):
    return str(tmp_path / "data" / "state.db")


def run(ref="b//tasks/t", started_at=1, **more):
    return TaskRun(ref, started_at, "running", **more)


def test_records_are_kept_and_replaced(path):
    history = SqliteTaskHistory(path)
    assert history.newest() == []
    number = history.begin(run(origin="schedule", run_id="r"))
    history.begin(run("b//tasks/u", 2))
    ended = msgspec.structs.replace(run(run_id="r"), status="failed", ended_at=9, detail={"reason": "timeout"})
    history.update(number, ended)
    assert history.newest() == [run("b//tasks/u", 2), ended]
    assert history.newest("b//tasks/t") == [ended]
    assert len(history.newest(limit=1)) == 1
    assert (history.forget("b//tasks/t"), history.forget("b//tasks/t")) == (1, 0)


def test_a_database_of_an_older_version_has_no_records_yet(path):
    database = Database(path)
    database.execute("DROP TABLE task_runs")
    database.execute("PRAGMA user_version = 2")
    database.close()
    history = SqliteTaskHistory(path)
    assert history.newest() == []
    history.begin(run())
    assert history.newest() == [run()]


def test_a_record_that_cannot_be_understood(path):
    history = SqliteTaskHistory(path)
    history.begin(run())
    database = Database(path)
    with database.transaction():
        database.execute("UPDATE task_runs SET body = 'x'")
    database.close()
    with pytest.raises(CorruptJournal, match="record of a task"):
        history.newest()
