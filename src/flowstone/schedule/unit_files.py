"""Files of ours in the folders of a machine's scheduler: their names, and writing them whole."""

from __future__ import annotations

import hashlib
import os
import re

from flowstone.errors import StoreError


def file_stem(key: str) -> str:
    """A file name for a row's key: readable, and different for different keys."""
    readable = re.sub(r"[^A-Za-z0-9_-]+", "-", key).strip("-")[:80]
    return f"{readable}-{hashlib.sha256(key.encode('utf-8', 'surrogateescape')).hexdigest()[:8]}"


def read_text(path: str) -> str:
    """The text of a file; empty when it cannot be read."""
    try:
        with open(path, encoding="utf-8", errors="surrogateescape") as file:
            return file.read()
    except OSError:
        return ""


def write_file(path: str, text: str) -> None:
    """Replace a file at once, with its folder made."""
    temporary = f"{path}.{os.getpid()}.tmp"
    try:
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(temporary, "w", encoding="utf-8", errors="surrogateescape") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except OSError as error:
        raise StoreError(f"{path} cannot be written: {error.strerror}") from None


def remove_file(path: str) -> None:
    try:
        os.unlink(path)
    except FileNotFoundError:
        return
    except OSError as error:
        raise StoreError(f"{path} cannot be removed: {error.strerror}") from None
