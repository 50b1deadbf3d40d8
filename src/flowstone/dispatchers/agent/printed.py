"""Reads what agent programs print: JSON documents, JSON lines, plain text. Shared by the harnesses."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from flowstone.values import Json, JsonError, decode_json

Object = dict[str, Any]
_CONTROL = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|\x1b[@-Z\\-_]")
_LOOSE = "\x08\x07\r"


def document(printed: str) -> Json:
    """The one JSON value that the output is; None where it is none."""
    text = printed.strip()
    if text[:1] not in ("{", "["):
        return None
    try:
        return decode_json(text)
    except JsonError:
        return None


def events(printed: str) -> Iterator[Object]:
    """The JSON objects that stand on lines of their own; other lines are the program's chatter."""
    for line in printed.split("\n"):
        if line.lstrip().startswith("{"):
            try:
                event = decode_json(line.strip())
            except JsonError:
                continue
            if isinstance(event, dict):
                yield event


def objects(printed: str) -> list[Object]:
    """The objects of an output that is one object, a list of them, or one a line."""
    found = document(printed)
    if isinstance(found, dict):
        return [found]
    if isinstance(found, list):
        return [item for item in found if isinstance(item, dict)]
    return list(events(printed))


def plain(printed: str) -> str:
    """Text without the terminal's control sequences, and without blanks at its ends."""
    return _CONTROL.sub("", printed).translate(dict.fromkeys(map(ord, _LOOSE))).strip()


def at(value: Json, *path: str) -> Json:
    """What lies below an object at the end of a path of keys; None where there is nothing."""
    for key in path:
        if not isinstance(value, dict):
            return None
        value = value.get(key)
    return value


def text_at(value: Json, *path: str) -> str | None:
    found = at(value, *path)
    return found if isinstance(found, str) else None


def count(*values: Json) -> int | None:
    """The sum of the numbers of tokens among the values; None where there is none."""
    known = [v for v in values if isinstance(v, int) and not isinstance(v, bool) and v >= 0]
    return sum(known) if known else None


Tokens = tuple[int | None, int | None]
"""Tokens read and written; None where they were not told."""


def more(before: Tokens, read: Json, written: Json) -> Tokens:
    """The same with what one more message tells."""
    return count(before[0], read), count(before[1], written)


def told(tokens: Tokens) -> dict[str, int | None]:
    """The fields of `Said` for tokens; the parts only where both are known."""
    read, written = tokens
    if read is None or written is None:
        return {"tokens": count(read, written)}
    return {"tokens": read + written, "tokens_in": read, "tokens_out": written}


def parts_text(content: Json) -> str | None:
    """A text, or the texts of a list of content parts."""
    if isinstance(content, list):
        texts = [text for part in content if (text := text_at(part, "text")) is not None]
        return "".join(texts) if texts else None
    return content if isinstance(content, str) else None
