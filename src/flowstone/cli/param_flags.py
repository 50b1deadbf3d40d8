"""Parameter flags: texts from the command line to JSON values by the declared schemas (akm facts 21.2)."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence

from flowstone.cli.options import GivenFlag
from flowstone.errors import InputError
from flowstone.values import Json, JsonError, decode_json, type_name

_NUMBER = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?")
MAX_SAFE = 2**53 - 1


def read_flags(given: Sequence[GivenFlag], schemas: Mapping[str, Json]) -> dict[str, Json]:
    """The params that the flags spell, in order of their first flag; InputError for one that does not fit.

    A param without a type keeps its text; a bare flag is true.
    """
    values: dict[str, list[str | None]] = {}
    for name, text in given:
        values.setdefault(name, []).append(text)
    return {name: _read(name, texts, types_of(schemas.get(name)), schemas.get(name)) for name, texts in values.items()}


def types_of(schema: Json) -> tuple[str, ...]:
    """The types that a schema lists; empty when it lists none."""
    kind = schema.get("type") if isinstance(schema, dict) else None
    if isinstance(kind, str):
        return (kind,)
    return tuple(kind) if isinstance(kind, list) else ()


def _read(name: str, texts: list[str | None], types: tuple[str, ...], schema: Json) -> Json:
    if "array" in types and "string" not in types:
        return _array(name, texts, types, schema)
    if len(texts) > 1:
        raise InputError(f"--{name} was provided more than once but is not declared as an array.")
    return coerce(f"--{name}", texts[0], types)


def coerce(label: str, text: str | None, types: tuple[str, ...]) -> Json:
    """One text by a list of types; a text wins where "string" is among them."""
    if not types:
        return True if text is None else text
    if text is None:
        if "boolean" in types:
            return True
        if "string" in types:
            return "true"
        raise InputError(f"{label} requires a value of type {' or '.join(types)}.")
    if "string" in types:
        return text
    for kind in types:
        value = _typed(kind, text)
        if value is not _UNFIT:
            return value
    raise InputError(f'{label} must be {" or ".join(types)}; received "{text}".')


def _array(name: str, texts: list[str | None], types: tuple[str, ...], schema: Json) -> Json:
    if len(texts) == 1 and texts[0] is not None and texts[0].lstrip().startswith("["):
        value = _typed("array", texts[0])
        if value is _UNFIT:
            raise InputError(f"--{name} must be a JSON array; received {texts[0]!r}.")
        return value
    if len(texts) == 1 and texts[0] == "null" and "null" in types:
        return None
    items = types_of(schema.get("items")) if isinstance(schema, dict) else ()
    if None in texts:
        raise InputError(f"--{name} requires a value of type array.")
    return [coerce(f"--{name}", text, items) for text in texts]


def _typed(kind: str, text: str) -> Json:
    match kind:
        case "boolean":
            return {"true": True, "false": False}.get(text, _UNFIT)
        case "null":
            return None if text == "null" else _UNFIT
        case "integer" | "number":
            return _number(kind, text)
        case "object" | "array":
            return _json(kind, text)
        case _:
            return _UNFIT


def _number(kind: str, text: str) -> Json:
    if not _NUMBER.fullmatch(text.strip()):
        return _UNFIT
    value = float(text)
    if not math.isfinite(value):
        return _UNFIT
    whole = int(value) if value.is_integer() and abs(value) <= MAX_SAFE else None
    if kind == "integer":
        return _UNFIT if whole is None else whole
    return value if whole is None else whole


def _json(kind: str, text: str) -> Json:
    try:
        value = decode_json(text)
    except JsonError:
        return _UNFIT
    return value if type_name(value) == kind else _UNFIT


_UNFIT = object()
"""What no text spells."""
