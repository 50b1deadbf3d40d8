"""Text of a plain YAML scalar → its value by the YAML 1.2 core schema; used by `read_yaml`.

`yes`, `on`, `0777`, `1_000`, `12:30` and dates are text, unlike in YAML 1.1.
"""

from __future__ import annotations

import re

MAX_DIGITS = 4000
"""Digits of an integer; more are refused, for reading them takes time that grows with the square."""

CoreValue = None | bool | int | float | str


class TooManyDigits(ValueError):
    """The text is an integer of more than `MAX_DIGITS` digits."""


def resolve_scalar(text: str) -> CoreValue:
    """The value of a plain scalar; a text that is nothing else is itself."""
    if text and text[0] not in _STARTS:
        return text
    if text in _WORDS:
        return _WORDS[text]
    if _DECIMAL.fullmatch(text):
        return _integer(text, 10)
    if _BASED.fullmatch(text):
        return _integer(text[2:], 8 if text[1] == "o" else 16)
    if _FLOAT.fullmatch(text):
        return float(text)
    if _INFINITY.fullmatch(text):
        return float("-inf") if text[0] == "-" else float("inf")
    return text


def resolve_tagged(tag: str, text: str) -> tuple[bool, CoreValue]:
    """Whether a tag is one of the core schema that fits the text, and the value it gives."""
    if tag in {"!", _PREFIX + "str"}:
        return True, text
    value = resolve_scalar(text)
    match tag.removeprefix(_PREFIX):
        case "null":
            return value is None, value
        case "bool":
            return isinstance(value, bool), value
        case "int":
            return isinstance(value, int) and not isinstance(value, bool), value
        case "float":
            fits = isinstance(value, (int, float)) and not isinstance(value, bool)
            return fits, _as_float(value) if fits else value
        case _:
            return False, value


def _as_float(value: CoreValue) -> CoreValue:
    try:
        return float(value) if isinstance(value, (int, float)) else value
    except OverflowError:
        return float("inf")


def _integer(digits: str, base: int) -> int:
    if len(digits) > MAX_DIGITS:
        raise TooManyDigits
    return int(digits, base)


_PREFIX = "tag:yaml.org,2002:"
_STARTS = frozenset("0123456789+-.nNtTfF~")
_WORDS: dict[str, CoreValue] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL")),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
    **dict.fromkeys((".nan", ".NaN", ".NAN"), float("nan")),
}
_DECIMAL = re.compile(r"[-+]?[0-9]+")
_BASED = re.compile(r"0o[0-7]+|0x[0-9a-fA-F]+")
_FLOAT = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?")
_INFINITY = re.compile(r"[-+]?\.(?:inf|Inf|INF)")
