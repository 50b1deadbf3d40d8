"""Reads what a command prints: bounded bytes of each stream, and text out of bytes.

A stream is read on past its bound and dropped, so that no command ever blocks on a full pipe.
"""

from __future__ import annotations

import os
from collections.abc import Callable

_CHUNK = 1 << 16
"""What a pipe holds at most; a larger buffer would be mapped and unmapped by the system for each read."""
_READS_AT_ONCE = 8
"""Full chunks taken before other commands get their turn."""


class Stream:
    """One captured pipe. `kept` are its first `limit` bytes and `total` counts all of them.

    `ended` tells that all writers have closed it; `on_bytes` gets every chunk as it comes.
    """

    def __init__(self, fd: int, limit: int, on_bytes: Callable[[bytes], None] | None = None) -> None:
        self.fd = fd
        self.limit = limit
        self.total = 0
        self.ended = False
        self._chunks: list[bytes] = []
        self._on_bytes = on_bytes

    @property
    def kept(self) -> bytes:
        return b"".join(self._chunks)[: self.limit]

    def read(self) -> bool:
        """Take what is there now; True once the stream has ended."""
        for _ in range(_READS_AT_ONCE):
            try:
                data = os.read(self.fd, _CHUNK)
            except BlockingIOError:
                return False
            except OSError:
                data = b""
            if not data:
                self.ended = True
                return True
            self._take(data)
        return False

    def close(self) -> None:
        if self.fd >= 0:
            os.close(self.fd)
            self.fd = -1

    def _take(self, data: bytes) -> None:
        if self.total < self.limit:
            self._chunks.append(data)
        self.total += len(data)
        if self._on_bytes is not None:
            self._on_bytes(data)


def decode(data: bytes) -> str:
    """UTF-8 as text, with one U+FFFD for each byte that is none."""
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        return data.decode("utf-8", "surrogateescape").translate(_REPLACED)


def whole_characters(data: bytes, length: int) -> int:
    """The largest cut at or below `length` that splits no UTF-8 character."""
    if length >= len(data):
        return len(data)
    for back in range(min(4, length + 1)):
        if data[length - back] & 0xC0 != 0x80:
            return length - back
    return length


_REPLACED = dict.fromkeys(range(0xDC80, 0xDD00), "\ufffd")
