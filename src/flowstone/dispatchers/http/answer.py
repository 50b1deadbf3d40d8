"""A streamed answer → `{status, body, json?}`, read no further than the cap and redacted once.

Compressed bodies are expanded piece by piece, so that a small body cannot become a large one.
"""

from __future__ import annotations

import codecs
import zlib
from collections.abc import AsyncIterator
from typing import Any

from flowstone.redaction import Redactor
from flowstone.values import MAX_DEPTH, Json, JsonError, decode_json

BODY_BYTES = 4 * 1024 * 1024
"""Bytes read of a body (orun reference, "Built-in actions"); of a longer one there is no `json`."""
_WINDOWS = {"gzip": 31, "x-gzip": 31, "deflate": 15}
_PLAIN_DEFLATE = -15


class DamagedBody(ValueError):
    """A compressed body that cannot be expanded."""


async def read_body(chunks: AsyncIterator[bytes], encoding: str, limit: int) -> bytes:
    """The beginning of a body, expanded: at most `limit` bytes. DamagedBody when it is no such encoding."""
    window = _WINDOWS.get(encoding.strip().lower())
    expander = None if window is None else _Expander(window)
    body = bytearray()
    async for chunk in chunks:
        body += chunk if expander is None else expander.expand(chunk, limit - len(body))
        if len(body) >= limit:
            return bytes(body[:limit])
    if expander is not None:
        expander.finish()
    return bytes(body)


def answer(status: int, body: bytes, redactor: Redactor) -> dict[str, Json]:
    """The result of the action. `body` may reach beyond the cap, so that a secret there is seen whole."""
    whole = len(body) <= BODY_BYTES
    text = body.decode("utf-8", "replace")
    result: dict[str, Json] = {"status": status}
    if not whole:
        head = codecs.getincrementaldecoder("utf-8")("replace").decode(body[:BODY_BYTES])
        result["body"] = redactor.text(text, len(head))
        return result
    result["body"] = redactor.text(text)
    try:
        result["json"] = redactor.json(decode_json(body, whole_floats=False, max_depth=MAX_DEPTH))
    except JsonError:
        return result
    return result


class _Expander:
    """Expands gzip (any number of members) or deflate (with or without its header)."""

    def __init__(self, window: int) -> None:
        self._window = window
        self._member: Any = zlib.decompressobj(window)
        self._begun = False

    def expand(self, data: bytes, room: int) -> bytes:
        """What `data` expands to, cut at `room` bytes."""
        found = bytearray()
        while data and len(found) < room:
            if self._member.eof:
                self._member = zlib.decompressobj(self._window)
            found += self._expanded(data, room - len(found))
            self._begun = True
            data = self._member.unused_data if self._member.eof else self._member.unconsumed_tail
        return bytes(found)

    def finish(self) -> None:
        """The body is over: it must have come to its own end."""
        if self._begun and not self._member.eof:
            raise DamagedBody("the compressed body ends too early")

    def _expanded(self, data: bytes, room: int) -> bytes:
        try:
            return bytes(self._member.decompress(data, room))
        except zlib.error as error:
            if self._window == _WINDOWS["deflate"] and not self._begun:
                self._window = _PLAIN_DEFLATE
                self._member = zlib.decompressobj(self._window)
                return self._expanded(data, room)
            raise DamagedBody(f"the body is not the compressed data that its header promises: {error}") from None
