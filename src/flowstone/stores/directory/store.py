"""The store of an `.orun` folder: a journal that steps cannot clobber, and the documented files beside it.

The journal is a database in `<root>/journal/`; `<root>/wfruns/<run>/` is the folder in which a run's
commands work and into which its files are published, after the commit and never read back.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence

from flowstone.errors import InputError, StoreError
from flowstone.run.record import RunRecord, RunSummary
from flowstone.stores.directory.folder import open_folder, put_file
from flowstone.stores.files import check_run_id, make_private_folder, storage_error
from flowstone.stores.sqlite.connection import BUSY_MS, Database
from flowstone.stores.sqlite.store import SqliteStore

SHIM_FOLDER = ".orun-bin"


class DirectoryStore(SqliteStore):
    """A SqliteStore that also keeps a folder for each run, with files for people and other programs."""

    def __init__(self, root: str, database: Database) -> None:
        super().__init__(database.path, database)
        self._runs = os.path.join(os.path.abspath(root), "wfruns")

    @classmethod
    def open(cls, path: str, *, readonly: bool = False, busy_ms: int = BUSY_MS) -> DirectoryStore:
        """Open the `.orun` folder at `path`, made if missing; `readonly`, a missing one reads as empty."""
        journal = os.path.join(path, "journal", "state.db")
        return cls(path, Database(journal, readonly=readonly, busy_ms=busy_ms))

    def create(self, record: RunRecord, summary: RunSummary) -> None:
        """Keep a new run, and make the folder in which its commands work."""
        self._database.check_writable()
        folder = self.run_folder(record.id)
        make_private_folder(self._runs)
        try:
            os.close(open_folder(self._runs, [record.id]))
        except OSError as error:
            raise storage_error(error, folder) from error
        super().create(record, summary)

    def delete(self, run_id: str) -> None:
        """Forget a run with its journal and its folder."""
        import shutil

        super().delete(run_id)
        shutil.rmtree(self.run_folder(run_id), ignore_errors=True)

    def size(self, run_id: str) -> int:
        """The run's journal and the files of its folder."""
        folder = self.run_folder(run_id)
        files = (os.path.join(at, name) for at, _, names in os.walk(folder) for name in names)
        return super().size(run_id) + sum(map(_size_of, files))

    def run_folder(self, run_id: str) -> str:
        """Where the run's commands work and its files are; an absolute path."""
        return os.path.join(self._runs, check_run_id(run_id))

    def shim_folder(self, run_id: str) -> str:
        """The folder that goes in front of PATH; `write_shim` fills it."""
        return os.path.join(self.run_folder(run_id), SHIM_FOLDER)

    def publish(self, run_id: str, files: Iterable[tuple[str, bytes]]) -> tuple[str, ...]:
        """Write files of a run folder, each whole or not at all; returns a warning for each that failed.

        Paths are relative to the run folder. It never raises for what commands did to the folder, and
        a run never fails by it: the journal has everything, and the next publication writes it again.
        """
        folder = self.run_folder(run_id)
        warnings = []
        for path, data in files:
            try:
                make_private_folder(self._runs)
                put_file(self._runs, f"{run_id}/{path}", data)
            except (OSError, ValueError, StoreError) as error:
                warnings.append(f"{os.path.join(folder, path)} was not written: {error}")
        return tuple(warnings)

    def write_shim(self, run_id: str, name: str, argv: Sequence[str]) -> str:
        """Put a program `name` into the shim folder that runs `argv` and its own arguments behind it.

        Returns its path. StoreError when it cannot be written: commands would run another program.
        """
        if "/" in name or name in {"", ".", ".."} or not argv or any("\0" in word for word in (name, *argv)):
            raise InputError(f"no program can be named {name!r} and run {list(argv)!r}")
        script = f'#!/bin/sh\nexec {" ".join(map(_quote, argv))} "$@"\n'
        path = os.path.join(self.shim_folder(run_id), name)
        make_private_folder(self._runs)
        try:
            put_file(self._runs, f"{run_id}/{SHIM_FOLDER}/{name}", os.fsencode(script), 0o700)
        except OSError as error:
            raise storage_error(error, path) from error
        return path


def _quote(word: str) -> str:
    """A word in single quotes, as the shell reads it back."""
    return "'" + word.replace("'", "'\"'\"'") + "'"


def _size_of(path: str) -> int:
    try:
        return os.lstat(path).st_size
    except OSError:
        return 0
