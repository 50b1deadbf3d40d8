"""The text of a model → the JSON value in it: tolerant of what models put around, never of damage.

Think blocks and fences go, prose around a value is passed over; a piece of a longer or broken value
is never taken for a value (akm facts 10.3).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from flowstone.values import MAX_DEPTH, Json, JsonError, decode_json

_THINK_HEAD = re.compile(r"\s*<think(?:ing)?>.*?</think(?:ing)?>", re.S)
_THINK_MARK = re.compile(r"<(/?)think(?:ing)?>")
_FENCE = re.compile(r"(`{3,}|~{3,})[^\n`]*\n(.*?)\n?[ \t]*\1", re.S)
_STRING = re.compile(r'"(?:[^"\\]++|\\.)*+(?:"|\\?\Z)', re.S)
"""A string, or one that is never closed up to the end of the text (which keeps the search linear)."""
_TOKEN = re.compile(_STRING.pattern + r"|[{}\[\]]", re.S)
_START = re.compile(r'\{(?=\s*["}])|\[(?=\s*(?:["{\[\]\-0-9]|true\b|false\b|null\b))')
_CONTROLS = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}


class NoJson(ValueError):
    """The text holds no JSON value that could be meant; the message says what is wrong with it."""


def find_json(text: str, fits: Callable[[Json], bool], *, whole: bool = False) -> Json:
    """The value that a text gives: the whole text, else the object or array in its prose that fits.

    Where none fits the first object counts, then the first array, so that it can be told what it
    lacks. `whole` refuses prose around it, for a text that is known to be cut. NoJson without any.
    """
    try:
        return whole_value(text)
    except NoJson as error:
        if whole:
            raise
        problem = error
    found = [value for value in values_in(text) if value is not BROKEN]
    ordered = [value for value in found if isinstance(value, dict)] + [v for v in found if isinstance(v, list)]
    if not ordered:
        raise problem
    return next((value for value in ordered if fits(value)), ordered[0])


def whole_value(text: str) -> Json:
    """The value that a text is, without the think block before it and the fence around it."""
    text = _bare(text)
    problem = "it is empty"
    for candidate in _readings(text):
        try:
            return _parsed(candidate)
        except JsonError as error:
            problem = str(error)
    raise NoJson(problem)


BROKEN: Json = object()
"""Stands for something that begins like a value and is none."""


def values_in(text: str) -> Iterator[Json]:
    """The outermost objects and arrays in a prose text, in order; BROKEN for each that is damaged."""
    text = _without_thoughts(_bare(text))
    at = 0
    while (start := _START.search(text, at)) is not None:
        end = _end_of(text, start.start())
        if end is None:
            yield BROKEN  # everything behind it may be a part of it
            return
        try:
            yield _parsed(text[start.start() : end])
        except JsonError:
            yield BROKEN
        at = end


def _readings(text: str) -> Iterator[str]:
    """The text as it stands, then without thoughts, then without the fence around it."""
    seen = set()
    head = _THINK_HEAD.sub("", text, count=1) if _THINK_HEAD.match(text) else text
    for reading in (text, head, _without_thoughts(text)):
        for candidate in (reading.strip(), _unfenced(reading.strip())):
            if candidate and candidate not in seen:
                seen.add(candidate)
                yield candidate


def _bare(text: str) -> str:
    return text.strip().lstrip("\ufeff").strip()


def _without_thoughts(text: str) -> str:
    """Without think blocks; what precedes an end without a beginning, or follows a beginning without end, goes."""
    kept: list[str] = []
    at, thinking = 0, False
    for mark in _THINK_MARK.finditer(text):
        ends = bool(mark[1])
        if ends and not thinking:
            kept.clear()
        elif not ends and not thinking:
            kept.append(text[at : mark.start()])
        thinking = not ends
        at = mark.end()
    return "".join(kept) if thinking else "".join((*kept, text[at:]))


def _unfenced(text: str) -> str:
    match = _FENCE.fullmatch(text)
    return text if match is None else match[2].strip()


def _parsed(text: str) -> Json:
    """Strict JSON, except that line feeds and tabs may stand in its strings as they are."""
    try:
        return decode_json(text, max_depth=MAX_DEPTH)
    except JsonError:
        escaped = _STRING.sub(lambda match: re.sub(r"[\n\r\t]", lambda c: _CONTROLS[c[0]], match[0]), text)
        if escaped == text:
            raise
        return decode_json(escaped, max_depth=MAX_DEPTH)


def _end_of(text: str, start: int) -> int | None:
    """Where the value that begins at `start` ends; None when it is never closed."""
    depth = 0
    for token in _TOKEN.finditer(text, start):
        if token[0] in "{[":
            depth += 1
        elif token[0] in "}]":
            depth -= 1
            if depth == 0:
                return token.end()
    return None
