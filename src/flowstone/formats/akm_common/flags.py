"""Parameter flags (and `--set name=value`) → the params of a run, typed as the workflow declares.

A flag's text is read by its param's schema (akm facts 21.2); then all values together are held
against the declared schemas.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from flowstone.errors import InputError
from flowstone.expr.schema import validate
from flowstone.plan.model import Param
from flowstone.ports.dialect import Via
from flowstone.values import Json, JsonError, clip, decode_json

Flag = tuple[str, str | None]
"""A name without dashes and its text; None is a bare flag."""

_TYPES = ("null", "boolean", "integer", "number", "object")


class _Mismatch(ValueError):
    """The text cannot be read as the declared type; the message completes `--name …` (`label`)."""


def coerce_flags(
    params: Sequence[Param], flags: Sequence[Flag], ready: Mapping[str, Json] | None = None, via: Via = Via.FLAG
) -> dict[str, Json]:
    """The params of a run in declared order: what the flags give, `ready` values, else the defaults.

    Raises InputError: UNKNOWN_FLAG for a name that is not declared, else INVALID_FLAG_VALUE with
    every flag that cannot be read as its type. `check_params` then holds them against the schemas.
    """
    declared = {param.name: param for param in params}
    given: dict[str, list[str | None]] = {}
    for name, text in flags:
        if name not in declared:
            raise _unknown(name, declared, via)
        given.setdefault(name, []).append(text)
    for name in ready or {}:
        if name not in declared:
            raise _unknown(name, declared, None)
    return _coerce_all(declared, given, ready or {}, via)


def label(name: str, via: Via) -> str:
    """How a param is called that was given by a text: as its giver typed it."""
    return f"--{name}" if via is Via.FLAG else f"--set {name}"


def check_params(params: Sequence[Param], values: Mapping[str, Json], *, flags: bool = True) -> None:
    """Hold the params of a run against the declared schemas; InputError lists everything that misses.

    `flags` says whether they were given as flags of their own.
    """
    properties = {param.name: param.schema or {} for param in params}
    problems = validate(dict(values), {"type": "object", "properties": properties}, "params")
    if problems:
        lines = "".join(f"\n- {problem}" for problem in problems)
        what = "Workflow parameter flags" if flags else "The params"
        raise InputError(f"{what} do not satisfy the workflow's declared schemas:{lines}")


def _unknown(name: str, declared: Mapping[str, Param], via: Via | None) -> InputError:
    """`via` None: the name came with a ready value."""
    dashes = "--" if via is Via.FLAG else ""
    names = ", ".join(f"{dashes}{known}" for known in declared)
    hint = f"The workflow declares {names}." if names else "The workflow declares no params."
    shown = clip(name, 80)
    typed = f" (--set {shown}=…)" if via is Via.SET else ""
    text = f"Unknown flag --{shown}." if via is Via.FLAG else f'Unknown parameter "{shown}"{typed}.'
    return InputError(text, code="UNKNOWN_FLAG", hint=hint)


def _coerce_all(
    declared: Mapping[str, Param], given: Mapping[str, list[str | None]], ready: Mapping[str, Json], via: Via
) -> dict[str, Json]:
    values: dict[str, Json] = {}
    problems = []
    for name, param in declared.items():
        if name not in given:
            if name in ready or param.has_default:
                values[name] = ready.get(name, param.default)
            continue
        try:
            values[name] = _coerce(param.schema or {}, given[name])
        except _Mismatch as mismatch:
            problems.append(f"{label(name, via)} {mismatch}.")
    if problems:
        raise InputError("\n".join(problems))
    return values


def _coerce(schema: Mapping[str, Any], texts: list[str | None]) -> Json:
    types = _types_of(schema)
    if "array" in types and "string" not in types:
        return _coerce_array(schema, texts)
    if len(texts) > 1:
        raise _Mismatch("was provided more than once but is not declared as an array")
    return _coerce_one(types, texts[0])


def _types_of(schema: Mapping[str, Any]) -> tuple[str, ...]:
    declared = schema.get("type", ())
    return (declared,) if isinstance(declared, str) else tuple(declared)


def _coerce_array(schema: Mapping[str, Any], texts: list[str | None]) -> list[Json]:
    """Each text is an item, unless the only one is a whole JSON list."""
    first = texts[0]
    if len(texts) == 1 and first is not None and first.lstrip().startswith("["):
        items = _json(first, list, "array")
        return list(items)
    items_schema = schema.get("items")
    types = _types_of(items_schema) if isinstance(items_schema, dict) else ()
    return [_coerce_one(types, text) for text in texts]


def _coerce_one(types: tuple[str, ...], text: str | None) -> Json:
    if "string" in types:
        return "true" if text is None else text
    if not types:
        return True if text is None else text
    if text is None:
        if "boolean" in types:
            return True
        raise _Mismatch(f"requires a value of type {' or '.join(types)}")
    for name in _TYPES:
        if name in types and (found := _READERS[name](text)) is not _MISFIT:
            return found
    if "array" in types:
        return _json(text, list, "array")
    raise _Mismatch(f'must be {" or ".join(types)}; received "{clip(text, 80)}"')


_MISFIT = object()
_DECIMAL = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_DIGITS = re.compile(r"[+-]?[0-9]{1,4000}")
_RADIX = re.compile(r"0(?:[xX][0-9A-Fa-f]{1,1000}|[oO][0-7]{1,1000}|[bB][01]{1,1000})")


def _number(text: str) -> Json:
    """A number with all its digits; `1.0` is 1."""
    trimmed = text.strip()
    if _DIGITS.fullmatch(trimmed):
        return int(trimmed)
    if _RADIX.fullmatch(trimmed):
        return int(trimmed, 0)
    if not _DECIMAL.fullmatch(trimmed):
        return _MISFIT
    value = float(trimmed)
    if value in (float("inf"), float("-inf")):
        return _MISFIT
    return _whole(trimmed, value) if value.is_integer() and abs(value) < 1e21 else value


def _whole(text: str, nearest: float) -> Json:
    """A number that is whole as a double, with the digits that a double may not have."""
    from decimal import Decimal

    exact = Decimal(text)
    return int(exact) if exact == exact.to_integral_value() else nearest


def _integer(text: str) -> Json:
    value = _number(text)
    return _MISFIT if isinstance(value, float) else value


def _boolean(text: str) -> Json:
    return {"true": True, "false": False}.get(text.strip(), _MISFIT)


def _object(text: str) -> Json:
    return _json(text, dict, "object") if text.lstrip().startswith("{") else _MISFIT


def _null(text: str) -> Json:
    return None if text.strip() == "null" else _MISFIT


_READERS: dict[str, Callable[[str], Json]] = {
    "null": _null,
    "boolean": _boolean,
    "integer": _integer,
    "number": _number,
    "object": _object,
}


def _json(text: str, kind: type, name: str) -> Any:
    try:
        value = decode_json(text, max_depth=64)
    except JsonError as error:
        raise _Mismatch(f'must be {name} as JSON; received "{clip(text, 80)}" ({error})') from None
    if not isinstance(value, kind):
        raise _Mismatch(f'must be {name} as JSON; received "{clip(text, 80)}"')
    return value
