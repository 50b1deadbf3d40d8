"""Live lines: the bytes of a running command in, whole redacted lines out.

A line is held back until it is complete, so that a secret which arrives in two reads is still
seen whole; a very long line is passed on in pieces that cut no secret.
"""

from __future__ import annotations

from collections.abc import Callable

from flowstone.dispatchers.process.capture import decode, whole_characters
from flowstone.redaction import Redactor

PIECE_BYTES = 1 << 16


class Lines:
    """Feeds `emit` with one text a line, without its line feed; a carriage return stays."""

    def __init__(self, redactor: Redactor, emit: Callable[[str], None]) -> None:
        self._redactor = redactor
        self._emit = emit
        self._pending = bytearray()

    def feed(self, data: bytes) -> None:
        complete, feed, rest = data.rpartition(b"\n")
        if feed:
            self._pending += complete
            for line in self._pending.split(b"\n"):
                self._pass_on(bytes(line))
            self._pending = bytearray(rest)
        else:
            self._pending += data
        if len(self._pending) > PIECE_BYTES + 8 * self._redactor.longest:
            self._pending = bytearray(self._pass_pieces(bytes(self._pending)))

    def finish(self) -> None:
        """Pass on a last line that has no line feed."""
        if self._pending:
            self._pass_on(bytes(self._pending))
            self._pending.clear()

    def _pass_on(self, line: bytes) -> None:
        if len(line) > PIECE_BYTES + 8 * self._redactor.longest:
            line = self._pass_pieces(line)
        self._emit(self._redactor.text(decode(line)))

    def _pass_pieces(self, line: bytes) -> bytes:
        """Pass on pieces of a long line; returns its end, in which a secret may have begun."""
        keep = 4 * self._redactor.longest
        while len(line) > PIECE_BYTES + 2 * keep:
            window = decode(line[: whole_characters(line, PIECE_BYTES + keep)])
            head = decode(line[: whole_characters(line, PIECE_BYTES)])
            cut = self._cut(window, len(head))
            self._emit(self._redactor.text(window, cut))
            line = line[len(_bytes_of(line, window, cut)) :]
        return line

    def _cut(self, window: str, at: int) -> int:
        """The end of the secret that `at` would cut, or `at`."""
        return next((stop for start, stop in self._redactor.spans(window) if start < at < stop), at)


def _bytes_of(line: bytes, window: str, cut: int) -> bytes:
    """The bytes of the first `cut` characters; a replaced byte counts as one."""
    text = line.decode("utf-8", "surrogateescape")[:cut] if "\ufffd" in window else window[:cut]
    return text.encode("utf-8", "surrogateescape")
