"""JSON value and schema → what does not fit, by the enforced JSON Schema subset (akm facts 5.2).

Evaluation is bounded and fails closed: a value that could not be checked to the end is not valid.
The schemas themselves are checked by `schema_check`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from flowstone.values import Json, canonical_json, clip, type_name

MAX_DEPTH = 64
MAX_CHECKS = 100_000
TYPES = ("null", "array", "string", "boolean", "integer", "number", "object")


def validate(value: Json, schema: Json, root: str = "$") -> list[str]:
    """The mistakes of a value, each beginning with its path; none means that it is valid.

    `root` stands for the value itself in the paths.
    """
    validation = _Validation()
    errors: list[_Error] = []
    try:
        validation.visit(value, schema, None, 0, errors)
    except _Exhausted as exhausted:
        errors.append((None, str(exhausted)))
    return [f"{_spell(path, root)}: {message}" for path, message in errors]


_Path = Any
"""A chain of pairs (path of the parent, property name or index), None at the root."""
_Error = tuple[_Path, str]


class _Exhausted(Exception):
    """A bound was reached: nothing more is checked, and the value does not count as valid."""


class _Validation:
    """One evaluation: it counts its checks and keeps the enums that it has already indexed."""

    def __init__(self) -> None:
        self._left = MAX_CHECKS
        self._enums: dict[int, frozenset[tuple[bool, Json]]] = {}

    def visit(self, value: Json, schema: Json, path: _Path, depth: int, errors: list[_Error]) -> None:
        self._charge(1)
        if depth > MAX_DEPTH:
            raise _Exhausted(f"the schema is nested more than {MAX_DEPTH} levels deep; the value is not valid")
        if not isinstance(schema, dict):
            if schema is not True:
                errors.append((path, "the schema for this value is not an object"))
            return
        wanted = schema.get("type")
        if wanted is not None and not _has_type(value, wanted):
            shown = wanted if isinstance(wanted, str) else "|".join(map(str, wanted))
            errors.append((path, f"expected type {shown}, got {type_name(value)}"))
            return
        if "enum" in schema and not self._listed(value, schema["enum"]):
            shown = clip(canonical_json(schema["enum"]), 400)
            errors.append((path, f"value {_show(value)} is not one of {shown}"))
            return
        if not _COMBINATORS.isdisjoint(schema):
            self._combine(value, schema, path, depth, errors)
        self._limits(value, schema, path, depth, errors)

    def _charge(self, checks: int) -> None:
        self._left -= checks
        if self._left < 0:
            raise _Exhausted(f"the value needs more than {MAX_CHECKS:,} checks; it is not valid")

    def _listed(self, value: Json, enum: list[Json]) -> bool:
        """By identity of primitives: 1 and true differ, 1 and 1.0 do not, a list is never listed."""
        if isinstance(value, (list, tuple, dict)):
            return False
        known = self._enums.get(id(enum))
        if known is None:
            scalars = (item for item in enum if not isinstance(item, (list, tuple, dict)))
            known = self._enums[id(enum)] = frozenset((isinstance(item, bool), item) for item in scalars)
        return (isinstance(value, bool), value) in known

    def _combine(self, value: Json, schema: Json, path: _Path, depth: int, errors: list[_Error]) -> None:
        for branch in schema.get("allOf", ()):
            self.visit(value, branch, path, depth + 1, errors)
        for keyword in ("anyOf", "oneOf"):
            if keyword in schema:
                self._alternatives(value, schema[keyword], keyword, path, depth, errors)
        if "not" in schema and not self._branch(value, schema["not"], path, depth):
            errors.append((path, 'value must not match the "not" schema'))

    def _branch(self, value: Json, schema: Json, path: _Path, depth: int) -> list[_Error]:
        found: list[_Error] = []
        self.visit(value, schema, path, depth + 1, found)
        return found

    def _alternatives(
        self, value: Json, branches: list[Json], keyword: str, path: _Path, depth: int, errors: list[_Error]
    ) -> None:
        matching: list[int] = []
        first_errors: list[_Error] = []
        for number, branch in enumerate(branches, 1):
            found = self._branch(value, branch, path, depth)
            if found:
                first_errors.append(found[0])
                continue
            matching.append(number)
            if keyword == "anyOf":
                return
        if not matching:
            errors.append((path, _none_match(keyword, len(branches), first_errors)))
        elif len(matching) > 1:
            shown = ", ".join(map(str, matching[:10]))
            message = f'value matches {len(matching)} "oneOf" schemas (branches {shown}); exactly one must match'
            errors.append((path, message))

    def _limits(self, value: Json, schema: Json, path: _Path, depth: int, errors: list[_Error]) -> None:
        if isinstance(value, dict):
            self._object(value, schema, path, depth, errors)
        elif isinstance(value, (list, tuple)):
            self._array(value, schema, path, depth, errors)
        elif isinstance(value, str):
            _check_length(value, schema, path, errors)
        elif isinstance(value, (int, float)) and not isinstance(value, bool):
            _check_range(value, schema, path, errors)

    def _array(self, value: Json, schema: Json, path: _Path, depth: int, errors: list[_Error]) -> None:
        if "minItems" in schema and len(value) < schema["minItems"]:
            errors.append((path, f"array has fewer than minItems {_number(schema['minItems'])}"))
        if "maxItems" in schema and len(value) > schema["maxItems"]:
            errors.append((path, f"array has more than maxItems {_number(schema['maxItems'])}"))
        items = schema.get("items")
        if items is not None:
            for index, item in enumerate(value):
                self.visit(item, items, (path, index), depth + 1, errors)

    def _object(self, value: Json, schema: Json, path: _Path, depth: int, errors: list[_Error]) -> None:
        required = schema.get("required", ())
        properties = schema.get("properties", _NOTHING)
        # A long list of names costs time too, where the value has few of them.
        self._charge((len(required) + len(properties)) // 16)
        for name in required:
            if name not in value:
                errors.append((path, f'missing required property "{name}"'))
        for name, inner in properties.items():
            if name in value:
                self.visit(value[name], inner, (path, name), depth + 1, errors)
        if schema.get("additionalProperties") is False:
            for name in value:
                if name not in properties:
                    message = f'unexpected property "{clip(name, 200)}" (additionalProperties: false)'
                    errors.append((path, message))


def _has_type(value: Json, wanted: Json) -> bool:
    if isinstance(wanted, str):
        test = _TESTS.get(wanted)
        return test is not None and test(value)
    return any(_has_type(value, one) for one in wanted)


def _is_number(value: Json) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _is_integer(value: Json) -> bool:
    return (isinstance(value, int) and not isinstance(value, bool)) or (isinstance(value, float) and value.is_integer())


def _check_length(value: str, schema: Json, path: _Path, errors: list[_Error]) -> None:
    if "minLength" not in schema and "maxLength" not in schema:
        return
    length = len(value) if value.isascii() else len(value.encode("utf-16-le", "surrogatepass")) // 2
    if "minLength" in schema and length < schema["minLength"]:
        errors.append((path, f"string shorter than minLength {_number(schema['minLength'])}"))
    if "maxLength" in schema and length > schema["maxLength"]:
        errors.append((path, f"string longer than maxLength {_number(schema['maxLength'])}"))


def _check_range(value: int | float, schema: Json, path: _Path, errors: list[_Error]) -> None:
    if "minimum" in schema and value < schema["minimum"]:
        errors.append((path, f"{_show(value)} is below minimum {_number(schema['minimum'])}"))
    if "maximum" in schema and value > schema["maximum"]:
        errors.append((path, f"{_show(value)} is above maximum {_number(schema['maximum'])}"))


def _none_match(keyword: str, count: int, first_errors: list[_Error]) -> str:
    shown = [f"{number}: {_spell(path, '$')}: {message}" for number, (path, message) in _few(first_errors)]
    if count > 3:
        shown.append(f"…{count - 3} more")
    return f'value matches none of the {count} "{keyword}" schemas ({"; ".join(shown)})'


def _few(errors: list[_Error]) -> list[tuple[int, _Error]]:
    return list(enumerate(errors[:3], 1))


def _spell(path: _Path, root: str) -> str:
    parts: list[str] = []
    while path is not None:
        path, part = path
        parts.append(f"[{part}]" if isinstance(part, int) else f".{part}")
    return root + "".join(reversed(parts))


def _show(value: Json) -> str:
    if isinstance(value, float):
        return _number(value)
    return clip(canonical_json(value), 200)


def _number(value: int | float) -> str:
    """As JSON, and without a fraction where there is none: 6, not 6.0."""
    whole = isinstance(value, float) and value.is_integer() and abs(value) < 1e21
    return canonical_json(int(value) if whole else value)


_NOTHING: dict[str, Json] = {}
_COMBINATORS = frozenset({"allOf", "anyOf", "oneOf", "not"})
_TESTS: dict[str, Callable[[Json], bool]] = {
    "null": lambda value: value is None,
    "array": lambda value: isinstance(value, (list, tuple)),
    "string": lambda value: isinstance(value, str),
    "boolean": lambda value: isinstance(value, bool),
    "integer": _is_integer,
    "number": _is_number,
    "object": lambda value: isinstance(value, dict),
}
