"""The schema of the database, as numbered steps from an empty file to the current version.

`user_version` counts the steps that were applied. A step, once released, is never edited.
"""

from __future__ import annotations

import sqlite3

from flowstone.errors import StoreError

APPLICATION_ID = 0x666C6F77

STEPS: tuple[tuple[str, ...], ...] = (
    (
        # What is never filtered by stays in `header` as JSON: a further field needs no migration.
        # AUTOINCREMENT: a key that a store object remembers never comes to mean another run.
        """CREATE TABLE runs (
            key INTEGER PRIMARY KEY AUTOINCREMENT,
            id TEXT NOT NULL UNIQUE,
            scope TEXT NOT NULL,
            ref TEXT NOT NULL,
            cwd TEXT NOT NULL,
            parent_run TEXT,
            created_at INTEGER NOT NULL,
            header TEXT NOT NULL
        )""",
        "CREATE INDEX runs_newest ON runs (created_at DESC, id DESC)",
        # Apart from the header, which a list reads, and from the summary, which each append writes.
        "CREATE TABLE plans (run INTEGER PRIMARY KEY, body TEXT NOT NULL)",
        """CREATE TABLE summaries (
            run INTEGER PRIMARY KEY,
            last_seq INTEGER NOT NULL,
            status TEXT NOT NULL,
            body TEXT NOT NULL
        )""",
        """CREATE TABLE outcomes (
            id INTEGER PRIMARY KEY,
            run INTEGER NOT NULL,
            unit TEXT NOT NULL,
            number INTEGER NOT NULL,
            hash TEXT NOT NULL,
            body TEXT NOT NULL,
            UNIQUE (run, unit, number, hash)
        )""",
        """CREATE TABLE events (
            position INTEGER PRIMARY KEY,
            run INTEGER NOT NULL,
            seq INTEGER NOT NULL,
            kind TEXT NOT NULL,
            outcome INTEGER,
            body TEXT NOT NULL,
            UNIQUE (run, seq)
        )""",
    ),
    # The runs that a run nests are looked up for each nested unit, and with each status.
    ("CREATE INDEX runs_of_parent ON runs (parent_run, created_at DESC, id DESC) WHERE parent_run IS NOT NULL",),
    (
        # What each start of a task came to; a run that it led to is in `runs` by its own.
        """CREATE TABLE task_runs (
            id INTEGER PRIMARY KEY,
            ref TEXT NOT NULL,
            started_at INTEGER NOT NULL,
            status TEXT NOT NULL,
            body TEXT NOT NULL
        )""",
        "CREATE INDEX task_runs_newest ON task_runs (ref, started_at)",
    ),
)

VERSION = len(STEPS)
READABLE = 1
"""The oldest version that can be read as it stands: what came after it changed no table."""


def version_of(connection: sqlite3.Connection, path: str) -> int:
    """Steps that were applied to the database; StoreError for one that is not ours or is newer."""
    version = int(connection.execute("PRAGMA user_version").fetchone()[0])
    if version == VERSION and _application_id(connection) == APPLICATION_ID:
        return version
    if version > VERSION and _application_id(connection) == APPLICATION_ID:
        raise StoreError(
            f"{path}: written by a newer version (schema {version}, this one knows {VERSION})",
            hint="upgrade flowstone, or point it to another folder",
        )
    if _application_id(connection) != APPLICATION_ID and not _is_empty(connection):
        raise StoreError(f"{path}: is a database of another program", hint="point flowstone to another folder")
    return version


def migrate(connection: sqlite3.Connection, path: str) -> None:
    """Bring the database to the current version in one transaction, whoever else tries as well."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        for number in range(version_of(connection, path), VERSION):
            for statement in STEPS[number]:
                connection.execute(statement)
        connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        connection.execute(f"PRAGMA user_version = {VERSION}")
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def _application_id(connection: sqlite3.Connection) -> int:
    return int(connection.execute("PRAGMA application_id").fetchone()[0])


def _is_empty(connection: sqlite3.Connection) -> bool:
    return connection.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchone() is None
