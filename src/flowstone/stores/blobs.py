"""Blobs as files: large artifacts, each under its SHA-256 in `<folder>/<2 digits>/<digest>`."""

from __future__ import annotations

import contextlib
import os
import stat
import time
from collections.abc import Callable

from flowstone.errors import CorruptJournal
from flowstone.stores.files import make_private_folder, storage_error, sync_folder, write_durably
from flowstone.values import sha256_hex

LATELY_S = 3600
"""For how long a blob is safe that no journal names yet."""


class BlobFolder:
    """Keeps bytes by their digest. The folder is made by the first `put`."""

    def __init__(self, folder: str) -> None:
        self._folder = folder

    def put(self, data: bytes) -> str:
        """Keep `data` durably; one that is there already, unaltered, is not written again."""
        digest = sha256_hex(data)
        path = self._path(digest)
        if self._holds(path, data):
            return digest
        folder = os.path.dirname(path)
        if not os.path.isdir(folder):
            make_private_folder(folder)
            self._sync(self._folder)
        write_durably(path, data)
        return digest

    def get(self, digest: str) -> bytes:
        """The bytes of `digest`; CorruptJournal when they are lost or altered."""
        if len(digest) != 64 or not set(digest) <= set("0123456789abcdef"):
            raise CorruptJournal(f"{digest[:80]!r} is no digest of a stored blob")
        path = self._path(digest)
        try:
            with open(path, "rb") as file:
                data = file.read()
        except FileNotFoundError:
            raise CorruptJournal(f"{path}: the blob is lost") from None
        except OSError as error:
            raise storage_error(error, path) from error
        if sha256_hex(data) != digest:
            raise CorruptJournal(f"{path}: the blob was altered: it does not match its digest")
        return data

    def sweep(self, named: Callable[[str], bool], *, dry_run: bool) -> tuple[int, int]:
        """Remove blobs that are not `named` and were not put lately; returns how many, and their bytes."""
        count = freed = 0
        for folder, _, names in os.walk(self._folder):
            for name in names:
                path = os.path.join(folder, name)
                found = _old_file(path)
                if found is None or named(name):
                    continue
                if not dry_run:
                    with contextlib.suppress(FileNotFoundError):
                        os.unlink(path)
                count, freed = count + 1, freed + found.st_size
        return count, freed

    def _path(self, digest: str) -> str:
        return os.path.join(self._folder, digest[:2], digest)

    def _holds(self, path: str, data: bytes) -> bool:
        try:
            with open(path, "rb") as file:
                same = file.read(len(data) + 1) == data
        except OSError:
            return False
        if same:
            with contextlib.suppress(OSError):
                os.utime(path)  # wanted again: no sweep takes it before its event is appended
            # Whoever wrote it may not have come to this yet.
            self._sync(os.path.dirname(path))
        return same

    def _sync(self, folder: str) -> None:
        try:
            sync_folder(folder)
        except OSError as error:
            raise storage_error(error, folder) from error


def _old_file(path: str) -> os.stat_result | None:
    """What is known of a plain file that was not written lately."""
    try:
        found = os.lstat(path)
    except OSError:
        return None
    return found if stat.S_ISREG(found.st_mode) and time.time() - found.st_mtime > LATELY_S else None
