"""Until when the times of each table were looked at, in files: what keeps two schedulers from firing twice.

A mark is read and written under a lock of its file, and before anything is started: a time is claimed
once, whoever looks first. The lock of a running job goes with the process that runs it.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Callable
from datetime import UTC, datetime
from typing import TypeVar

from flowstone.errors import StoreError
from flowstone.values import sha256_hex

T = TypeVar("T")


class Marks:
    """The marks in one folder, which is made when it is needed."""

    def __init__(self, folder: str) -> None:
        self._folder = folder

    def claim(self, name: str, decide: Callable[[datetime | None], tuple[datetime, T]]) -> T:
        """Let `decide` turn the mark of a table into the next one and a decision, while nobody else does."""
        descriptor = self._open(name, "mark")
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            before = _read(descriptor)
            after, decision = decide(before)
            if after != before:
                _write(descriptor, after)
            return decision
        finally:
            os.close(descriptor)

    def occupy(self, name: str) -> int | None:
        """A descriptor that holds the table's job lock, to be inherited by the job; None if one runs."""
        descriptor = self._open(name, "running")
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(descriptor)
            return None
        return descriptor

    def _open(self, name: str, kind: str) -> int:
        path = os.path.join(self._folder, f"{sha256_hex(name)[:32]}.{kind}")
        try:
            os.makedirs(self._folder, mode=0o700, exist_ok=True)
            return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise StoreError(f"{path} cannot be opened: {error.strerror}") from None


def _read(descriptor: int) -> datetime | None:
    text = os.pread(descriptor, 64, 0).decode("ascii", "replace").strip()
    try:
        return datetime.fromtimestamp(int(text) / 1000, UTC)
    except (ValueError, OverflowError, OSError):
        return None


def _write(descriptor: int, moment: datetime) -> None:
    """Longer texts of other moments cannot remain: the same digits, and a line feed behind them."""
    os.pwrite(descriptor, f"{int(moment.timestamp() * 1000):015d}\n".encode(), 0)
    os.fsync(descriptor)
