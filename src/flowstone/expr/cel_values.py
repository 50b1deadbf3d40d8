"""Values into and out of CEL: what may be passed in, and the JSON and text forms of results."""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from flowstone.expr.cel_errors import CelError
from flowstone.expr.duration import format_go_duration
from flowstone.values import Json, canonical_json


class NotJson(CelError):
    """A result that JSON cannot hold (orun decision 2); the message says which part and why."""


def passable(value: Any, where: str) -> Any:
    """`value` with plain types only, ready for the library; `where` names it in errors.

    The library cuts texts at NUL without a word and fails on lone surrogates, so both are refused,
    and so are integers beyond 64 bits.
    """
    try:
        return _plain(value)
    except _Unfit as found:
        raise CelError(found.told(where)) from None


class _Unfit(Exception):
    """A part that cannot be passed in; its place is put together on the way out, so that others cost nothing."""

    def __init__(self, problem: str) -> None:
        super().__init__(problem)
        self.problem = problem
        self.place: list[str] = []

    def told(self, where: str) -> str:
        return f"{where}{''.join(reversed(self.place))}{self.problem}"


def _plain(value: Any) -> Any:
    match value:
        case None | bool() | float():
            return value
        case str():
            return _text(value)
        case int():
            if not -(2**63) <= value < 2**64:
                raise _Unfit(f": the integer {value} does not fit into 64 bits")
            return value
        case dict() | Mapping():
            return {_text(key): _plain_in(item, key) for key, item in value.items()}
        case list() | tuple():
            return [_plain_in(item, index) for index, item in enumerate(value)]
    raise _Unfit(f": a value of type {type(value).__name__} cannot be used in expressions")


def _plain_in(value: Any, key: object) -> Any:
    try:
        return _plain(value)
    except _Unfit as found:
        found.place.append(f"[{key}]" if isinstance(key, int) else f".{key}")
        raise


def to_json(value: Any) -> Json:
    """The JSON value of a result; timestamps and durations become text, null stays null."""
    match value:
        case None | bool() | int() | str():
            return value
        case float():
            if not math.isfinite(value):
                raise _not_json(_double(value))
            return value
        case list():
            return [to_json(item) for item in value]
        case dict():
            return {_key(key): to_json(item) for key, item in value.items()}
        case datetime() | timedelta():
            return stringify(value)
        case bytearray() | bytes():
            raise _not_json("bytes")
    raise _not_json(f"the type {_type_value(value)}")


def stringify(value: Any) -> str:
    """The text of a result inside other text (orun decision 11)."""
    match value:
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case str():
            return value
        case int():
            return str(value)
        case float():
            return _double(value)
        case datetime():
            return _rfc3339(value)
        case timedelta():
            return _go_duration(value)
        case list() | dict():
            return _compact(to_json(value))
        case bytearray() | bytes():
            raise CelError("bytes have no text form; convert them with string(…)")
    return _type_value(value)


def type_of(value: Any) -> str:
    """The CEL name of a result's type, for messages."""
    return next((name for kind, name in _TYPES if isinstance(value, kind)), "type")


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise _Unfit(": a map with keys that are no text cannot be used in expressions")
    if "\0" in value:
        raise _Unfit(" holds a NUL character, which expressions cannot take")
    if not value.isascii():
        try:
            value.encode("utf-8")
        except UnicodeEncodeError:
            raise _Unfit(" holds a lone surrogate (half of a character)") from None
    return value


def _key(key: Any) -> str:
    if not isinstance(key, str):
        raise _not_json(f"a map with a key of type {type_of(key)}")
    return key


def _not_json(what: str) -> NotJson:
    return NotJson(f"{what} cannot be stored as JSON")


def _double(value: float) -> str:
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "+Inf" if value > 0 else "-Inf"
    if value.is_integer():
        return str(int(value)) if abs(value) < 1e21 else repr(value)
    return repr(value)


def _compact(value: Json) -> str:
    return canonical_json(_whole(value))


def _whole(value: Json) -> Json:
    """Doubles without fraction as integers, as they are spelt outside of JSON too."""
    match value:
        case float():
            return int(value) if value.is_integer() and abs(value) < 1e21 else value
        case list():
            return [_whole(item) for item in value]
        case dict():
            return {key: _whole(item) for key, item in value.items()}
    return value


def _rfc3339(value: datetime) -> str:
    text = value.replace(tzinfo=None).isoformat()
    return (text.rstrip("0") if "." in text else text) + "Z"


def _go_duration(value: timedelta) -> str:
    return format_go_duration(((value.days * 86_400 + value.seconds) * 1_000_000 + value.microseconds) * 1_000)


def _type_value(value: Any) -> str:
    name = getattr(value, "name", None)
    return str(name()).lower() if callable(name) else type(value).__name__


_TYPES: tuple[tuple[Any, str], ...] = (
    (type(None), "null_type"),
    (bool, "bool"),
    (str, "string"),
    (int, "int"),
    (float, "double"),
    (list, "list"),
    (dict, "map"),
    (datetime, "google.protobuf.Timestamp"),
    (timedelta, "google.protobuf.Duration"),
    ((bytes, bytearray), "bytes"),
)
