"""A schema as authored → what is wrong with it: only what the engine enforces may be written.

A keyword that JSON Schema knows and the subset does not (akm facts 5.1) is refused, for a gate
that depends on a schema constraining nothing is worse than a loud failure.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import msgspec

from flowstone.expr.schema import MAX_DEPTH, TYPES
from flowstone.values import Json, canonical_bytes, clip, type_name

MAX_SCHEMA_BYTES = 256 * 1024
ENFORCED = (
    "type",
    "enum",
    "properties",
    "required",
    "items",
    "additionalProperties",
    "minItems",
    "maxItems",
    "minLength",
    "maxLength",
    "minimum",
    "maximum",
    "allOf",
    "anyOf",
    "oneOf",
    "not",
)


class SchemaProblem(msgspec.Struct, frozen=True):
    """`path` leads from the schema's root to the keyword or value that is wrong."""

    path: tuple[str | int, ...]
    message: str


def check_schema(schema: Json, label: str) -> list[SchemaProblem]:
    """The problems of a schema, outermost first; `label` names it, as in `Param "p" schema`."""
    problems = list(_check(schema, label, (), 0))
    if not problems and _too_large(schema):
        message = f"{label} is larger than {MAX_SCHEMA_BYTES // 1024} KiB as JSON."
        problems.append(SchemaProblem((), message))
    return problems


_Path = tuple[str | int, ...]


def _check(schema: Json, label: str, path: _Path, depth: int) -> Iterator[SchemaProblem]:
    if not isinstance(schema, dict):
        yield _malformed(label, path, (), f"a schema must be an object, got {type_name(schema)}")
        return
    if depth > MAX_DEPTH:
        yield _malformed(label, path, (), f"it is nested more than {MAX_DEPTH} levels deep")
        return
    for keyword, value in schema.items():
        if keyword in UNSUPPORTED or _is_unsupported_form(keyword, value):
            yield _unsupported(label, path, keyword)
            continue
        fault = _fault(keyword, value)
        if fault is not None:
            yield _malformed(label, path, (keyword,), fault)
            continue
        for segments, inner in _inner_schemas(keyword, value):
            yield from _check(inner, label, path + segments, depth + 1)


def _is_unsupported_form(keyword: str, value: Json) -> bool:
    if keyword == "items":
        return isinstance(value, list)
    return keyword == "additionalProperties" and isinstance(value, dict)


def _inner_schemas(keyword: str, value: Json) -> Iterator[tuple[_Path, Json]]:
    match keyword:
        case "properties":
            for name, inner in value.items():
                yield ("properties", name), inner
        case "items" | "not":
            yield (keyword,), value
        case "allOf" | "anyOf" | "oneOf":
            for index, inner in enumerate(value):
                yield (keyword, index), inner


def _fault(keyword: str, value: Json) -> str | None:
    """What is wrong with the value of an enforced keyword."""
    match keyword:
        case "type":
            return _type_fault(value)
        case "enum":
            return None if _filled_list(value) else '"enum" must be a non-empty list'
        case "properties":
            return None if isinstance(value, dict) else '"properties" must be an object'
        case "required":
            named = isinstance(value, list) and all(isinstance(name, str) for name in value)
            return None if named else '"required" must be a list of strings'
        case "items" | "not":
            return None if isinstance(value, dict) else f'"{keyword}" must be a schema object'
        case "additionalProperties":
            return None if isinstance(value, bool) else '"additionalProperties" must be true or false'
        case "allOf" | "anyOf" | "oneOf":
            schemas = _filled_list(value) and all(isinstance(inner, dict) for inner in value)
            return None if schemas else f'"{keyword}" must be a non-empty list of schema objects'
        case "minItems" | "maxItems" | "minLength" | "maxLength":
            return None if _is_count(value) else f'"{keyword}" must be a non-negative integer'
        case "minimum" | "maximum":
            return None if _is_finite(value) else f'"{keyword}" must be a finite number'
        case _:
            return None


def _type_fault(value: Json) -> str | None:
    names = value if isinstance(value, list) else [value]
    if not names:
        return '"type" must not be an empty list'
    for name in names:
        if not isinstance(name, str):
            return f'"type" must be a string or a list of strings, got {type_name(name)}'
        if name not in TYPES:
            return f'unknown type "{clip(name, 80)}"; the types are {", ".join(TYPES)}'
    return None


def _filled_list(value: Json) -> bool:
    return isinstance(value, list) and bool(value)


def _is_count(value: Json) -> bool:
    whole = isinstance(value, int) or (isinstance(value, float) and value.is_integer())
    return whole and not isinstance(value, bool) and value >= 0


def _is_finite(value: Json) -> bool:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return False
    return isinstance(value, int) or math.isfinite(value)


def _malformed(label: str, path: _Path, keyword: _Path, fault: str) -> SchemaProblem:
    message = f"{label} is not a valid JSON Schema (at {_spell(path)}): {fault}."
    return SchemaProblem(path + keyword, message)


def _unsupported(label: str, path: _Path, keyword: str) -> SchemaProblem:
    what = {"items": "tuple-form", "additionalProperties": "schema-form"}.get(keyword)
    named = f'{what} keyword "{keyword}"' if what else f'keyword "{keyword}"'
    hint = _HINTS.get(keyword)
    message = (
        f"{label} (at {_spell(path)}): {named} is not enforced by the workflow schema subset — "
        f"it would constrain nothing{f'; {hint}' if hint else ''}. "
        f"Supported JSON Schema keywords: {', '.join(ENFORCED)}."
    )
    return SchemaProblem((*path, keyword), message)


def _spell(path: _Path) -> str:
    return ".".join(("$", *map(str, path)))


def _too_large(schema: Json) -> bool:
    try:
        return len(canonical_bytes(schema)) > MAX_SCHEMA_BYTES
    except ValueError:
        return False  # an annotation that JSON does not have, such as .nan: refused with the document


UNSUPPORTED = frozenset(
    {
        "$ref",
        "$defs",
        "definitions",
        "$anchor",
        "$dynamicRef",
        "$dynamicAnchor",
        "if",
        "then",
        "else",
        "const",
        "pattern",
        "format",
        "patternProperties",
        "propertyNames",
        "additionalItems",
        "prefixItems",
        "contains",
        "minContains",
        "maxContains",
        "uniqueItems",
        "multipleOf",
        "exclusiveMinimum",
        "exclusiveMaximum",
        "minProperties",
        "maxProperties",
        "dependencies",
        "dependentRequired",
        "dependentSchemas",
        "unevaluatedItems",
        "unevaluatedProperties",
        "contentEncoding",
        "contentMediaType",
        "contentSchema",
    }
)
_SHAPE = (
    'list the allowed values with "enum", bound its size with "minLength"/"maxLength", '
    "or check the shape in the step's gate rubric"
)
_BRANCHES = 'describe the alternatives with "anyOf" or "oneOf"'
_HINTS = {
    "$ref": "inline the schema that it refers to",
    "$defs": "inline each definition where it is used",
    "definitions": "inline each definition where it is used",
    "const": 'use an "enum" of a single value',
    "pattern": _SHAPE,
    "format": _SHAPE,
    "patternProperties": 'list the names under "properties"',
    "if": _BRANCHES,
    "then": _BRANCHES,
    "else": _BRANCHES,
    "uniqueItems": "check it in the step's gate rubric",
    "exclusiveMinimum": 'use "minimum"',
    "exclusiveMaximum": 'use "maximum"',
    "items": "give one schema for all items",
    "prefixItems": 'use "items" with one schema for all items',
    "additionalProperties": 'use "additionalProperties: false", or list the names under "properties"',
}
