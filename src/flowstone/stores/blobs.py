"""Blobs as files: large artifacts, each under its SHA-256 in `<folder>/<2 digits>/<digest>`."""

from __future__ import annotations

import os

from flowstone.errors import CorruptJournal
from flowstone.stores.files import make_private_folder, storage_error, sync_folder, write_durably
from flowstone.values import sha256_hex


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

    def _path(self, digest: str) -> str:
        return os.path.join(self._folder, digest[:2], digest)

    def _holds(self, path: str, data: bytes) -> bool:
        try:
            with open(path, "rb") as file:
                same = file.read(len(data) + 1) == data
        except OSError:
            return False
        if same:
            # Whoever wrote it may not have come to this yet.
            self._sync(os.path.dirname(path))
        return same

    def _sync(self, folder: str) -> None:
        try:
            sync_folder(folder)
        except OSError as error:
            raise storage_error(error, folder) from error
