"""Live lines: the bytes of a running command in, whole redacted lines out.

A line is held back until it is complete, so that a secret which arrives in two reads is still
seen whole; so are lines with which a secret of several lines may have begun. A very long line is
passed on in pieces that cut no secret.
"""

from __future__ import annotations

from collections.abc import Callable

from flowstone.dispatchers.process.capture import decode, whole_characters
from flowstone.redaction import Redactor

PIECE_BYTES = 1 << 16
NEWLINE = 0x0A


class Lines:
    """Feeds `emit` with lists of texts, one a line, without its line feed; a carriage return stays."""

    def __init__(self, redactor: Redactor, emit: Callable[[list[str]], None]) -> None:
        self._redactor = redactor
        self._emit = emit
        self._pending = bytearray()
        forms = (form.encode("utf-8", "surrogatepass") for form in redactor.multi_line)
        self._beginnings = {form[: at + 1] for form in forms for at, byte in enumerate(form) if byte == NEWLINE}
        self._longest = PIECE_BYTES + 8 * redactor.longest

    def feed(self, data: bytes) -> None:
        if self._beginnings:
            self._feed_blocks(data)
            return
        complete, feed, rest = data.rpartition(b"\n")
        if feed:
            self._pending += complete
            self._emit(self._texts(bytes(self._pending)))
            self._pending = bytearray(rest)
        else:
            self._pending += data
        self._pass_pieces()

    def finish(self) -> None:
        """Pass on a last line that has no line feed, and what was held back."""
        if self._pending:
            block = bytes(self._pending)
            self._pending.clear()
            self._emit(self._block(block))

    def _feed_blocks(self, data: bytes) -> None:
        """As `feed`, where a secret may span lines: what is passed on is redacted in one piece."""
        self._pending += data
        end = self._pending.rfind(b"\n") + 1
        block = bytes(self._pending[:end])
        decided = self._decided(block)
        if decided:
            del self._pending[:decided]
            self._emit(self._block(block[:decided]))
        self._pass_pieces()

    def _decided(self, block: bytes) -> int:
        """How many bytes of whole lines belong to no secret that may go on behind them."""
        begun = [len(block) - len(start) for start in self._beginnings if block.endswith(start)]
        if not begun:
            return len(block)
        text = decode(block)
        cut = len(decode(block[: block.rfind(b"\n", 0, min(begun)) + 1]))
        for start, stop in reversed(self._redactor.spans(text)):
            if start < cut < stop:
                cut = text.rfind("\n", 0, start) + 1
        return len(_bytes_of(block, text, cut))

    def _pass_pieces(self) -> None:
        """Pass on what has come so far of a line that is longer than may be held back."""
        if len(self._pending) > self._longest:
            pieces: list[str] = []
            self._pending = bytearray(self._pieces(bytes(self._pending), pieces))
            self._emit(pieces)

    def _block(self, block: bytes) -> list[str]:
        """The lines of a block; where secrets may span lines it is redacted in one piece."""
        if not self._beginnings:
            return self._texts(block)
        return self._redactor.text(decode(block)).removesuffix("\n").split("\n")

    def _texts(self, block: bytes) -> list[str]:
        """The lines of a block; as long as no secret is in it, all of them are looked at in one go."""
        text = decode(block)
        lines = text.split("\n")
        if self._redactor.text(text) == text and (len(block) <= self._longest or self._all_short(lines)):
            return lines
        texts: list[str] = []
        for line in block.split(b"\n"):
            end = self._pieces(line, texts) if len(line) > self._longest else line
            texts.append(self._redactor.text(decode(end)))
        return texts

    def _all_short(self, lines: list[str]) -> bool:
        """No line can have more bytes than may be passed on at a time: a character has at most four."""
        return 4 * max(map(len, lines)) <= self._longest

    def _pieces(self, line: bytes, texts: list[str]) -> bytes:
        """Add the pieces of a long line; returns its end, in which a secret may have begun."""
        keep = 4 * self._redactor.longest
        while len(line) > PIECE_BYTES + 2 * keep:
            window = decode(line[: whole_characters(line, PIECE_BYTES + keep)])
            head = decode(line[: whole_characters(line, PIECE_BYTES)])
            cut = self._cut(window, len(head))
            texts += self._redactor.text(window, cut).split("\n")
            line = line[len(_bytes_of(line, window, cut)) :]
        return line

    def _cut(self, window: str, at: int) -> int:
        """The end of the secret that `at` would cut, or `at`."""
        return next((stop for start, stop in self._redactor.spans(window) if start < at < stop), at)


def _bytes_of(line: bytes, window: str, cut: int) -> bytes:
    """The bytes of the first `cut` characters; a replaced byte counts as one."""
    text = line.decode("utf-8", "surrogateescape")[:cut] if "\ufffd" in window else window[:cut]
    return text.encode("utf-8", "surrogateescape")
