"""One connection to the database file: opening it, transactions, and SQLite's errors in words."""

from __future__ import annotations

import errno
import os
import sqlite3
import time
from collections.abc import Callable
from types import TracebackType
from typing import Any

from flowstone.errors import CorruptJournal, StoreError
from flowstone.stores.files import make_private_folder, storage_error
from flowstone.stores.sqlite.migrations import READABLE, VERSION, migrate, version_of

BUSY_MS = 10_000
"""How long a lock of another process is waited for."""

_CACHED_STATEMENTS = 64

_COMMITS_BEFORE_RESERVING = 8
_SYNC = getattr(os, "fdatasync", os.fsync)
_LOG_BYTES = 4_200_000
"""What the write-ahead log grows to before SQLite begins it again: 1,000 pages with their headers."""


class Database:
    """The connection of one store. It belongs to the thread that opened it."""

    def __init__(self, path: str, *, readonly: bool = False, busy_ms: int = BUSY_MS) -> None:
        """Open, and create or migrate where needed. Opened `readonly`, a missing file reads as empty."""
        self.path = path
        self.readonly = readonly
        self._busy_ms = busy_ms
        self._commits = 0
        self._log: int | None = None
        try:
            self._connection = self._open_to_read() if readonly else self._open_to_write()
        except sqlite3.Error as error:
            raise explain(error, path) from error
        self._files: dict[str, tuple[int, int] | None] = {} if readonly else {path: _identity(path)}
        self.execute = self._connection.execute
        self.executemany = self._connection.executemany

    def rows(self, statement: str, arguments: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
        """All rows of a query outside a transaction."""
        try:
            return self.execute(statement, arguments).fetchall()
        except (sqlite3.Error, UnicodeError) as error:
            raise explain(error, self.path) from error

    def transaction(self, meanwhile: Callable[[], object] | None = None) -> Transaction:
        """A context that commits as a whole, durably, or leaves no trace.

        `meanwhile` is called between the commit and its sync, or behind both where they are one.
        """
        self.check_writable()
        if meanwhile is not None and self._log is None:
            self._sync_apart()
        return Transaction(self, meanwhile)

    def check_writable(self) -> None:
        if self.readonly:
            raise StoreError(f"{self.path}: opened to read only")

    def committed(self) -> None:
        """Make a commit durable, and count it; whoever makes many gets a log that need not grow with each."""
        if self._log is not None:
            try:
                _SYNC(self._log)
            except OSError as error:
                raise storage_error(error, f"{self.path}-wal") from error
        self._commits += 1
        if self._commits == _COMMITS_BEFORE_RESERVING:
            self._reserve_log()

    def check_files(self) -> None:
        """StoreError when the files were taken away: SQLite goes on to write into them, and nobody will find that."""
        if self._commits == 0:
            self._files[f"{self.path}-wal"] = _identity(f"{self.path}-wal")
        for path, known in self._files.items():
            if _identity(path) != known:
                raise StoreError(
                    f"{path}: was removed or replaced while it was in use, so what was just recorded is lost",
                    hint="keep commands away from that folder, put the file back from a backup if you have one, "
                    "and start a new run",
                )

    def vacuum(self) -> None:
        """Write the file anew without its gaps; one that somebody else uses stays as it is."""
        self.check_writable()
        try:
            self.execute("VACUUM")
        except sqlite3.OperationalError as error:
            if "locked" not in str(error):
                raise explain(error, self.path) from error

    def close(self) -> None:
        """Close; the last connection folds the write-ahead log into the file.

        Nothing that was committed depends on that, so a failure here loses nothing.
        """
        if self._log is not None:
            os.close(self._log)
            self._log = None
        try:
            self._connection.close()
        except sqlite3.OperationalError:
            return

    def _sync_apart(self) -> None:
        """From here on a commit only writes to the log, and `committed` has the disk keep it.

        SQLite syncs the same file at the same place (synchronous = FULL), but inside its COMMIT,
        where nothing can be done meanwhile. Without a log there is nothing to take apart.
        """
        try:
            self._log = os.open(f"{self.path}-wal", os.O_RDONLY | os.O_CLOEXEC)
        except OSError:
            return
        self.execute("PRAGMA synchronous = NORMAL")

    def _reserve_log(self) -> None:
        """Lengthen the log with zeros: to make a commit durable that writes over them takes half as long.

        Under the write lock nobody appends meanwhile. A zero is no frame, so that a reader, and
        whoever recovers the log after a crash, ends where the frames do.
        """
        try:
            self.execute("BEGIN IMMEDIATE")
        except sqlite3.Error:
            return
        try:
            _lengthen(f"{self.path}-wal", _LOG_BYTES)
        finally:
            self.execute("ROLLBACK")

    def _open_to_write(self) -> sqlite3.Connection:
        if not os.path.exists(self.path):
            _create_file(self.path)
        connection = self._connect(self.path, "rw")
        try:
            # The one setting that a file does not remember; FULL makes each commit durable.
            connection.execute("PRAGMA synchronous = FULL")
            if version_of(connection, self.path) < VERSION:
                self._use_write_ahead_log(connection)
                migrate(connection, self.path)
        except BaseException:
            connection.close()
            raise
        return connection

    def _open_to_read(self) -> sqlite3.Connection:
        if not os.path.exists(self.path):
            _require_reachable(self.path)
            return self._empty()
        try:
            connection = self._connect(self.path, "ro")
            version = self._checked_version(connection)
        except sqlite3.OperationalError as error:
            if _code(error) not in {sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY} or self._has_log():
                raise
            # In a read-only folder the log's index cannot be made; without a log none is needed.
            connection = self._connect(self.path, "ro&immutable=1")
            version = self._checked_version(connection)
        if version >= READABLE:
            return connection
        connection.close()
        if version == 0:
            return self._empty()
        raise StoreError(
            f"{self.path}: written by an older version (schema {version}, this one needs {READABLE})",
            hint="start or resume a run once: that brings it up to date",
        )

    def _checked_version(self, connection: sqlite3.Connection) -> int:
        try:
            return version_of(connection, self.path)
        except BaseException:
            connection.close()
            raise

    def _has_log(self) -> bool:
        try:
            return os.path.getsize(f"{self.path}-wal") > 0
        except OSError:
            return False

    def _empty(self) -> sqlite3.Connection:
        connection = sqlite3.connect(":memory:", isolation_level=None)
        migrate(connection, self.path)
        return connection

    def _connect(self, path: str, mode: str) -> sqlite3.Connection:
        quoted = os.path.abspath(path).replace("%", "%25").replace("?", "%3f").replace("#", "%23")
        return sqlite3.connect(
            f"file:{quoted}?mode={mode}",
            uri=True,
            isolation_level=None,
            timeout=self._busy_ms / 1000,
            cached_statements=_CACHED_STATEMENTS,
        )

    def _use_write_ahead_log(self, connection: sqlite3.Connection) -> None:
        """Set once, before the version: two that create the file may meet here, and SQLite won't wait."""
        deadline = time.monotonic() + self._busy_ms / 1000
        while True:
            try:
                connection.execute("PRAGMA journal_mode = WAL")
                return
            except sqlite3.OperationalError as error:
                if _code(error) != sqlite3.SQLITE_BUSY or time.monotonic() >= deadline:
                    raise
                time.sleep(0.005)


def _require_reachable(path: str) -> None:
    """StoreError where a file stands in the way to a database that is yet to be made."""
    folder = os.path.dirname(os.path.abspath(path))
    while not os.path.lexists(folder):
        folder = os.path.dirname(folder)
    if not os.path.isdir(folder):
        raise StoreError(f"{folder}: is no folder, so {path} cannot be in it", hint="point flowstone to a folder")


class Transaction:
    """`with database.transaction():` – begun for writing at once, so that it never fails half-way."""

    __slots__ = ("_database", "_meanwhile")

    def __init__(self, database: Database, meanwhile: Callable[[], object] | None = None) -> None:
        self._database = database
        self._meanwhile = meanwhile

    def __enter__(self) -> None:
        try:
            self._database.execute("BEGIN IMMEDIATE")
        except sqlite3.Error as error:
            raise explain(error, self._database.path) from error

    def __exit__(
        self,
        kind: type[BaseException] | None,
        raised: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if raised is None:
            try:
                self._database.execute("COMMIT")
            except sqlite3.Error as error:
                raised = error
            else:
                self._settle()
                return
        self._roll_back()
        if isinstance(raised, (sqlite3.Error, UnicodeError, OverflowError)):
            raise explain(raised, self._database.path) from raised

    def _settle(self) -> None:
        """What may be done meanwhile is done only for a commit that somebody will find."""
        self._database.check_files()
        try:
            if self._meanwhile is not None:
                self._meanwhile()
        finally:
            self._database.committed()

    def _roll_back(self) -> None:
        try:
            self._database.execute("ROLLBACK")
        except sqlite3.Error:
            return  # SQLite has rolled back by itself, as it does when the disk is full


def explain(error: Exception, path: str) -> StoreError:
    """The error that names the file, the cause and what to do."""
    code = _code(error)
    if code in {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB}:
        return CorruptJournal(f"{path}: {error}", hint="restore the file from a backup, or move it away")
    if code in {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}:
        return StoreError(
            f"{path}: stays locked by another process ({error})",
            code="STATE_DB_CONTENDED",
            hint="try again once the other process is done",
        )
    if isinstance(error, UnicodeError):
        return StoreError(f"{path}: a text cannot be stored: {error}")
    cause = _CAUSES.get(code)
    if cause is None:
        name = getattr(error, "sqlite_errorname", type(error).__name__)
        hint = "the disk may be full or failing: look at it, then resume" if code == sqlite3.SQLITE_IOERR else None
        return StoreError(f"{path}: {error} ({name})", hint=hint)
    return storage_error(OSError(cause, str(error)), path)


_CAUSES = {
    sqlite3.SQLITE_FULL: errno.ENOSPC,
    sqlite3.SQLITE_READONLY: errno.EACCES,
    sqlite3.SQLITE_CANTOPEN: errno.EACCES,
}


def _code(error: Exception) -> int:
    """The primary result code; extended codes carry it in their low byte."""
    return int(getattr(error, "sqlite_errorcode", 0)) & 0xFF


def _identity(path: str) -> tuple[int, int] | None:
    """Which file stands at a path; None for none."""
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_dev, found.st_ino


def _lengthen(path: str, size: int) -> None:
    """Put zeros behind the end of a file; a system that has no room for them is left as it was."""
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
    except OSError:
        return
    try:
        end = os.fstat(descriptor).st_size
        if end < size:
            try:
                os.pwrite(descriptor, bytes(size - end), end)
            except OSError:
                os.ftruncate(descriptor, end)
    finally:
        os.close(descriptor)


def _create_file(path: str) -> None:
    """An empty file that only its owner can read: SQLite gives its side files the same mode.

    Never opened when it exists: closing a descriptor would drop the locks of this process on it.
    """
    make_private_folder(os.path.dirname(os.path.abspath(path)))
    try:
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
    except FileExistsError:
        return
    except OSError as error:
        raise storage_error(error, path) from error
