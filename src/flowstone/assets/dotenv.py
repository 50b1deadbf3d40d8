"""Env files: the text of a `.env` file to its variables.

The grammar is small and strict: nothing is expanded, and a line that fits no rule is an error
that names its place and never its content.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from flowstone.errors import SourceError

_START = re.compile(r"[ \t]*(?:export[ \t]+)?(?P<name>[A-Za-z_][A-Za-z0-9_.-]*)[ \t]*=[ \t]*")
_TAIL = re.compile(r"[ \t]*(?:#[^\n]*)?(?:\n|$)")
_ESCAPES = {"n": "\n", "r": "\r", "t": "\t", '"': '"', "\\": "\\", "$": "$", "\n": ""}
_ESCAPE = re.compile(r"\\(.)", re.S)
_DOUBLE = re.compile(r'"((?:[^"\\]++|\\.)*+)"', re.S)
"""Possessive: a way back for each character would take 150 bytes of memory each."""
_SINGLE = re.compile(r"'([^']*)'")
_BARE_COMMENT = re.compile(r"(?<=[ \t])#")


def parse_dotenv(data: bytes, path: str) -> dict[str, str]:
    """The variables in the file's order; of a name that comes twice the later value holds.

    A value may be bare (to the end of its line, a comment needs a blank before its `#`), in single
    quotes (as it stands) or in double quotes (escapes \\n \\r \\t \\" \\\\ \\$); quoted ones may
    span lines. `$NAME` stays as it is. Errors are SourceErrors that begin `path:line:`.
    """
    values: dict[str, str] = {}
    for name, value, _ in entries(data, path):
        values.pop(name, None)
        values[name] = value
    return values


def entries(data: bytes, path: str) -> Iterator[tuple[str, str, int]]:
    """Each assignment of the file, in order, as (name, value, line); errors as those of `parse_dotenv`."""
    text = _decode(data, path)
    position = 0
    while position < len(text):
        blank = _TAIL.match(text, position)
        if blank is not None:
            position = blank.end()
            continue
        start = _START.match(text, position)
        if start is None:
            raise _wrong(path, text, position, "expected NAME=value")
        value, position = _value(text, start.end(), path)
        yield start["name"], value, text.count("\n", 0, start.start("name")) + 1


def _decode(data: bytes, path: str) -> str:
    try:
        text = data.removeprefix(b"\xef\xbb\xbf").decode("utf-8")
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        raise SourceError(f"{path}:{line}: the file is not UTF-8 text") from None
    if "\0" in text:
        raise _wrong(path, text, text.index("\0"), "a NUL character cannot stand in a variable")
    return text.replace("\r\n", "\n")


def _value(text: str, position: int, path: str) -> tuple[str, int]:
    quote = text[position : position + 1]
    if quote not in ("'", '"') or not quote:
        return _bare(text, position)
    match = (_SINGLE if quote == "'" else _DOUBLE).match(text, position)
    if match is None:
        raise _wrong(path, text, position, f"the {quote} that opens here is never closed")
    tail = _TAIL.match(text, match.end())
    if tail is None:
        raise _wrong(path, text, match.end(), "only a comment may follow a quoted value")
    inner = match[1] if quote == "'" else _ESCAPE.sub(_unescape, match[1])
    return inner, tail.end()


def _bare(text: str, position: int) -> tuple[str, int]:
    end = text.find("\n", position)
    end = len(text) if end < 0 else end
    comment = _BARE_COMMENT.search(text, position, end)
    return text[position : comment.start() if comment else end].strip(" \t"), end + 1


def _unescape(match: re.Match[str]) -> str:
    return _ESCAPES.get(match[1], match[0])


def _wrong(path: str, text: str, position: int, what: str) -> SourceError:
    line = text.count("\n", 0, position) + 1
    return SourceError(f"{path}:{line}: {what}", code="ENV_SOURCE_INVALID")
