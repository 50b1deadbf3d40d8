"""The history of tasks in the database of runs (the TaskHistory port)."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from flowstone.errors import CorruptJournal
from flowstone.ports.history import TaskRun
from flowstone.stores.sqlite.connection import Database

_LEFT_OUT = ("ref", "started_at", "status")


class SqliteTaskHistory:
    """Opened for each use: starts of tasks are rare, and a verb closes what it opened."""

    def __init__(self, path: str) -> None:
        self._path = path

    def begin(self, run: TaskRun) -> int:
        database = Database(self._path)
        try:
            with database.transaction():
                statement = "INSERT INTO task_runs (ref, started_at, status, body) VALUES (?, ?, ?, ?)"
                return int(database.execute(statement, _row(run)).lastrowid or 0)
        finally:
            database.close()

    def update(self, number: int, run: TaskRun) -> None:
        database = Database(self._path)
        try:
            with database.transaction():
                statement = "UPDATE task_runs SET ref = ?, started_at = ?, status = ?, body = ? WHERE id = ?"
                database.execute(statement, (*_row(run), number))
        finally:
            database.close()

    def newest(self, ref: str | None = None, limit: int | None = None) -> Sequence[TaskRun]:
        database = Database(self._path, readonly=True)
        where, arguments = ("", ()) if ref is None else (" WHERE ref = ?", (ref,))
        statement = (
            f"SELECT ref, started_at, status, body FROM task_runs{where} ORDER BY started_at DESC, id DESC LIMIT ?"
        )
        try:
            # A database that is read as an older version left it has no such table yet.
            known = database.rows("SELECT 1 FROM sqlite_master WHERE name = 'task_runs'")
            rows = database.rows(statement, (*arguments, -1 if limit is None else limit)) if known else []
        finally:
            database.close()
        return [_read(self._path, *row) for row in rows]

    def forget(self, ref: str) -> int:
        database = Database(self._path)
        try:
            with database.transaction():
                return int(database.execute("DELETE FROM task_runs WHERE ref = ?", (ref,)).rowcount)
        finally:
            database.close()


def _row(run: TaskRun) -> tuple[str, int, str, str]:
    body = {name: value for name, value in msgspec.to_builtins(run).items() if name not in _LEFT_OUT}
    return run.ref, run.started_at, run.status, msgspec.json.encode(body).decode()


def _read(path: str, ref: str, started_at: int, status: str, body: str) -> TaskRun:
    try:
        return msgspec.convert(
            {**msgspec.json.decode(body), "ref": ref, "started_at": started_at, "status": status}, TaskRun
        )
    except (msgspec.MsgspecError, TypeError) as error:
        raise CorruptJournal(f"{path}: a record of a task cannot be understood: {error}") from None
