"""JSON values, their one canonical spelling and their digests: the words every layer shares.

Everything that is hashed, stored or compared as JSON goes through `canonical_json`, and
everything that is read goes through `decode_json`, so that equal values have equal bytes in
every process.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import cache
from typing import Any, TypeAlias

Json: TypeAlias = Any
"""None, bool, int, float, str, list of Json or dict of str to Json."""

MAX_DEPTH = 64
"""Levels of nesting that any JSON value of a document, plan or artifact may have."""


class JsonError(ValueError):
    """The text is not one strict JSON value; the message says what is wrong and where."""


def canonical_json(value: Json) -> str:
    """Spell `value` in canonical JSON: keys by code point, no blanks, no escapes beyond JSON's own.

    Integers of any size keep their digits. NaN and the infinities raise ValueError.
    """
    return _ENCODER.encode(value)


def canonical_bytes(value: Json) -> bytes:
    """`canonical_json` as UTF-8; a lone surrogate raises UnicodeEncodeError (a ValueError)."""
    return _ENCODER.encode(value).encode("utf-8")


def is_text(value: Json) -> bool:
    """Whether a value can be kept: a byte of an argument that is no UTF-8 comes as a lone surrogate, which cannot."""
    try:
        canonical_bytes(value)
    except UnicodeEncodeError:
        return False
    return True


def pretty_json(value: Json) -> str:
    """Spell `value` for people and for files they read: two blanks of indent, keys in given order."""
    return json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False)


def decode_json(text: str | bytes, *, whole_floats: bool = True, max_depth: int | None = None) -> Json:
    """Read exactly one strict JSON value (RFC 8259).

    `whole_floats` reads a number such as `1.0` as the integer 1, as languages with one number
    type do. NaN, Infinity, a number beyond a double (`1e999`), a byte-order mark, a lone
    surrogate and text around the value raise JsonError; so does nesting beyond `max_depth`.
    """
    try:
        decoded = text.decode("utf-8") if isinstance(text, bytes) else text
        value = (_WHOLE_DECODER if whole_floats else _DECODER).decode(decoded)
    except RecursionError:
        raise JsonError("the value is nested too deeply") from None
    except ValueError as error:
        raise JsonError(str(error)) from None
    if "\\u" in decoded or not decoded.isascii():
        _refuse_surrogates(value)
    if max_depth is not None and depth_of(value) > max_depth:
        raise JsonError(f"the value is nested more than {max_depth} levels deep")
    return value


def depth_of(value: Json) -> int:
    """Levels of nesting: 0 for a scalar, 1 for a list or object of scalars."""
    depth, layer = 0, [value]
    while True:
        inner: list[Json] = []
        found = False
        for item in layer:
            if isinstance(item, dict):
                inner.extend(item.values())
                found = True
            elif isinstance(item, (list, tuple)):
                inner.extend(item)
                found = True
        if not found:
            return depth
        depth, layer = depth + 1, inner


def sha256_hex(data: bytes | str) -> str:
    """The SHA-256 of bytes, or of the UTF-8 of a text, as 64 hex digits."""
    raw = data.encode("utf-8") if isinstance(data, str) else data
    digest: str = (_small_sha256() if len(raw) < _LARGE else _large_sha256())(raw).hexdigest()
    return digest


@cache
def _small_sha256() -> Callable[[bytes], Any]:
    """Python's own: slower a byte, but `hashlib` loads OpenSSL, which takes as long as a small verb's work."""
    for module in ("_sha2", "_sha256"):
        try:
            return __import__(module).sha256  # type: ignore[no-any-return]  # a module without types
        except ImportError:
            continue
    return _large_sha256()


@cache
def _large_sha256() -> Callable[[bytes], Any]:
    from hashlib import sha256

    return sha256


def type_name(value: Json) -> str:
    """The JSON Schema name of a value's type; an integral number is "integer"."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, int) or (isinstance(value, float) and value.is_integer()):
        return "integer"
    if isinstance(value, float):
        return "number"
    if isinstance(value, str):
        return "string"
    return "array" if isinstance(value, (list, tuple)) else "object"


def clip(text: str, limit: int) -> str:
    """`text`, or its first `limit` characters with an ellipsis behind them."""
    return text if len(text) <= limit else text[:limit] + "…"


def _float(digits: str) -> float:
    value = float(digits)
    if value in (float("inf"), float("-inf")):
        raise ValueError(f"the number {clip(digits, 40)} is beyond the range of a double")
    return value


def _whole_float(digits: str) -> int | float:
    value = _float(digits)
    return int(value) if value.is_integer() and abs(value) < 1e21 else value


def _constant(name: str) -> Json:
    raise ValueError(f"{name} is not a JSON value")


def _refuse_surrogates(value: Json) -> None:
    try:
        _ENCODER.encode(value).encode("utf-8")
    except UnicodeEncodeError:
        raise JsonError("the value holds a lone surrogate (half of a character)") from None


_LARGE = 1 << 12
_ENCODER = json.JSONEncoder(sort_keys=True, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
_DECODER = json.JSONDecoder(parse_float=_float, parse_constant=_constant)
_WHOLE_DECODER = json.JSONDecoder(parse_float=_whole_float, parse_constant=_constant)
