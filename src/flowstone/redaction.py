"""Redaction: texts and JSON values in, the same without secrets out, before anything is kept or shown.

A `Redactor` knows a set of secrets and the forms in which programs print them. It is pure and
deterministic, and applied before any clipping (akm facts, decision 7; orun facts, decision 5).
"""

from __future__ import annotations

import json
import re
from binascii import b2a_base64
from collections.abc import Iterable, Iterator

import msgspec

from flowstone.values import Json, JsonError, decode_json

MARK = "[REDACTED]"
SUBSTRING_CHARS = 6
"""Values of at least so many characters are found inside words; shorter ones as whole tokens."""
LINE_CHARS = 8
"""Lines of a multi-line value, and texts inside a JSON value, are secrets from this length on."""

_WRAPS = (64, 76)
_INNER_DEPTH = 16


class Secret(msgspec.Struct, frozen=True):
    """A secret's value; it shows itself nowhere."""

    value: str

    def __repr__(self) -> str:
        return "Secret(…)"


class Redactor:
    """Replaces secrets, in whatever known form, by `MARK`. Immutable.

    Matches that overlap or adjoin become one mark; marks that a text already has stay whole.
    """

    def __init__(self, secrets: Iterable[Secret | str] = ()) -> None:
        values = (s.value if isinstance(s, Secret) else s for s in secrets)
        self._values = frozenset(value for value in values if value.strip())
        self._set_up({form for value in self._values for form in _forms(value)})

    def _set_up(self, forms: set[str]) -> None:
        self._forms = forms
        self._long = sorted((f for f in forms if len(f) >= SUBSTRING_CHARS), key=lambda f: (-len(f), f))
        short = sorted(f for f in forms if len(f) < SUBSTRING_CHARS)
        self._short = [re.compile(rf"(?<![^\W_]){re.escape(f)}(?![^\W_])") for f in short]
        self.empty = not forms
        self.longest = max(map(len, forms), default=0)
        self.multi_line = tuple(form for form in forms if "\n" in form)

    def extended(self, more: Iterable[Secret | str]) -> Redactor:
        """One that knows these secrets as well."""
        values = {s.value if isinstance(s, Secret) else s for s in more}
        new = {value for value in values if value.strip()} - self._values
        if not new:
            return self
        larger = Redactor()
        larger._values = self._values | new
        larger._set_up(self._forms | {form for value in new for form in _forms(value)})
        return larger

    def text(self, text: str, end: int | None = None) -> str:
        """`text` with its secrets replaced.

        With `end` only so many characters of `text` are wanted, but those behind are looked at, so
        that a secret which the end cuts in two does not show its head.
        """
        if self.empty:
            return text if end is None else text[:end]
        limit = len(text) if end is None else min(end, len(text))
        pieces: list[str] = []
        at = 0
        for start, stop in self.spans(text):
            if start >= limit:
                break
            pieces += (text[at:start], MARK)
            at = stop
        if at < limit:
            pieces.append(text[at:limit])
        return "".join(pieces)

    def json(self, value: Json) -> Json:
        """A JSON value with secrets replaced in texts, keys and the spelling of numbers."""
        if self.empty:
            return value
        match value:
            case str():
                return self.text(value)
            case dict():
                return self._object(value)
            case list() | tuple():
                return [self.json(item) for item in value]
            case bool() | None:
                return value
            case _:
                spelling = json.dumps(value)
                redacted = self.text(spelling)
                return value if redacted == spelling else redacted

    def _object(self, value: dict[str, Json]) -> dict[str, Json]:
        """Keys that become equal are told apart by a number, so that no value is lost."""
        result: dict[str, Json] = {}
        for key, item in value.items():
            name = redacted = self.text(key)
            count = 1
            while name in result:
                count += 1
                name = f"{redacted} ({count})"
            result[name] = self.json(item)
        return result

    def spans(self, text: str) -> list[tuple[int, int]]:
        """The stretches to be replaced, in order, none touching another."""
        found = [span for form in self._long for span in _occurrences(text, form)]
        found += [match.span() for pattern in self._short for match in pattern.finditer(text)]
        found += _occurrences(text, MARK)
        found.sort()
        merged: list[tuple[int, int]] = []
        for start, stop in found:
            if merged and start <= merged[-1][1]:
                merged[-1] = (merged[-1][0], max(stop, merged[-1][1]))
            else:
                merged.append((start, stop))
        return merged


def _occurrences(text: str, form: str) -> Iterator[tuple[int, int]]:
    """Where `form` occurs, overlapping occurrences joined."""
    at = text.find(form)
    while at >= 0:
        start, stop = at, at + len(form)
        at = text.find(form, at + 1)
        while 0 <= at <= stop:
            stop = at + len(form)
            at = text.find(form, at + 1)
        yield start, stop


def _forms(value: str) -> Iterator[str]:
    """Everything under which `value` may be printed."""
    stripped = value.strip()
    if len(stripped) < SUBSTRING_CHARS:
        yield stripped
        return
    for part in _parts(value):
        yield part
        yield from _escaped(part)
        yield from _encoded(part)


def _parts(value: str) -> set[str]:
    """The value, its lines, and the texts inside it if it is JSON: each as it stands and stripped."""
    whole = [value, *_inner_texts(value)]
    parts = {part for text in whole for part in (text, text.strip())}
    for text in whole:
        lines = text.splitlines()
        if len(lines) > 1:
            shapes = (shape for line in lines for shape in (line, line.strip(), " ".join(line.split())))
            parts.update(shape for shape in shapes if len(shape.strip()) >= LINE_CHARS)
    return parts


def _inner_texts(value: str) -> list[str]:
    """Texts of at least `LINE_CHARS` characters inside a value that is a JSON object or list."""
    if value.lstrip()[:1] not in ("{", "["):
        return []
    try:
        layer = [decode_json(value.strip(), max_depth=_INNER_DEPTH)]
    except JsonError:
        return []
    texts: list[str] = []
    while layer:
        item = layer.pop()
        if isinstance(item, dict):
            layer.extend(item.values())
        elif isinstance(item, list):
            layer.extend(item)
        elif isinstance(item, str) and len(item.strip()) >= LINE_CHARS:
            texts.append(item)
    return texts


def _escaped(value: str) -> Iterator[str]:
    """As JSON (also JSON within JSON), as a Python or shell literal, and as part of a URL."""
    once = set(_json_escaped(value))
    yield from once
    for form in once:
        yield from _json_escaped(form)
    yield repr(value)[1:-1]
    yield ascii(value)[1:-1]
    yield repr(value + "'\"")[1:-4].removesuffix("\\")
    yield value.encode("unicode_escape").decode("ascii")
    yield value.replace("'", "'\\''")
    yield from _url_quoted(value)


def _json_escaped(value: str) -> Iterator[str]:
    plain = json.dumps(value, ensure_ascii=False)[1:-1]
    pure = json.dumps(value)[1:-1]
    for form in (plain, pure):
        yield form
        yield form.replace("/", "\\/")
        yield form.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _url_quoted(value: str) -> Iterator[str]:
    from urllib.parse import quote, quote_plus

    raw = value.encode("utf-8", "surrogatepass")
    for form in (quote(raw, safe=""), quote(raw), quote(raw, safe="!'()*"), quote_plus(raw)):
        yield form
        yield re.sub("%[0-9A-F]{2}", lambda match: match[0].lower(), form)


def _encoded(value: str) -> Iterator[str]:
    """Base64 of the value wherever it stands in what was encoded: at each of three alignments.

    Only the characters that the value alone decides are matched in the middle of something; the
    whole encoding is matched with its last character and padding, and in wrapped lines.
    """
    raw = value.encode("utf-8", "surrogatepass")
    for form in _alignments(raw):
        for spelling in (form, form.replace("+", "-").replace("/", "_")):
            if len(spelling) >= SUBSTRING_CHARS:
                yield spelling


def _alignments(raw: bytes) -> Iterator[str]:
    whole = _base64(raw)
    yield whole
    yield whole.rstrip("=")
    for before, first in ((0, 0), (1, 2), (2, 3)):
        yield _base64(b"\0" * before + raw)[first : (before + len(raw)) * 8 // 6]
    for width in _WRAPS:
        if len(whole) > width:
            for piece in (whole[i : i + width] for i in range(0, len(whole), width)):
                if len(piece) >= LINE_CHARS:
                    yield piece
                    yield piece.rstrip("=")


def _base64(raw: bytes) -> str:
    return b2a_base64(raw, newline=False).decode("ascii")
