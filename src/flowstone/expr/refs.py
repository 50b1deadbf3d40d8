"""Reference text → `Reference`, and a reference with what a run knows → a value.

The grammar is `params.<ident>` or `steps.<ident>.output(.<ident>|[<int>])*`; there are no filters,
defaults or functions. The messages are the whole explanation that an author sees.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from flowstone.expr.model import Reference
from flowstone.values import Json, clip

ALLOWED_FORMS = "params.<name>, steps.<id>.output(.<ident>|[<int>])*"


class ReferenceProblem(ValueError):
    """The text is no reference; `offset` is the 0-based character at which it stops being one."""

    def __init__(self, message: str, offset: int) -> None:
        super().__init__(message)
        self.message = message
        self.offset = offset


class Unresolved(ValueError):
    """The reference names nothing that the run has; the message says which part is missing."""


def parse_reference(text: str) -> Reference:
    """Read a reference; blanks around it are ignored."""
    trimmed = text.strip()
    start = len(text) - len(text.lstrip())
    if not trimmed:
        raise ReferenceProblem(f"Empty reference; allowed forms: {ALLOWED_FORMS}.", 0)
    root = _IDENT.match(trimmed)
    if root is None:
        raise ReferenceProblem(f"{_invalid(trimmed)} — must start with an identifier.", start)
    match root.group():
        case "params":
            return _parse_param(trimmed, root.end(), start)
        case "steps":
            return _parse_step(trimmed, root.end(), start)
        case other:
            message = f'Unknown root "{clip(other, 80)}" in "{clip(trimmed, 200)}"; allowed forms: {ALLOWED_FORMS}.'
            raise ReferenceProblem(message, start)


def resolve(reference: Reference, params: Mapping[str, Json], artifacts: Mapping[str, Json]) -> Json:
    """The value of a reference; `artifacts` holds what each step with an output has put out.

    A step that was skipped, failed or has not run has no entry there. Raises Unresolved where a
    part is missing, and where the value at the end is null.
    """
    if reference.root == "params":
        spelled, value = f"params.{reference.name}", _param(reference, params)
    else:
        spelled, value = f"steps.{reference.name}.output", _artifact(reference, artifacts)
    for part in reference.path:
        value = _index(spelled, value, part) if isinstance(part, int) else _own(spelled, value, part, reference)
        spelled += f"[{part}]" if isinstance(part, int) else f".{part}"
    if value is None:
        raise Unresolved(f"{spelled} resolved to null.")
    return value


def _parse_param(text: str, position: int, start: int) -> Reference:
    name = _DOTTED.match(text, position)
    if name is None:
        message = f"{_invalid(text)} — params requires a name: params.<name>."
        raise ReferenceProblem(message, start + position)
    if name.end() < len(text):
        trailing = clip(text[name.end() :], 80)
        message = f'{_invalid(text)} — params takes exactly one name, found trailing "{trailing}".'
        raise ReferenceProblem(message, start + name.end())
    return Reference(text, "params", name.group(1))


def _parse_step(text: str, position: int, start: int) -> Reference:
    name = _DOTTED.match(text, position)
    if name is None:
        message = f"{_invalid(text)} — steps requires a step id: steps.<id>.output."
        raise ReferenceProblem(message, start + position)
    if name.end() == len(text):
        message = f'{_invalid(text)} — steps.{name.group(1)} must be followed by ".output".'
        raise ReferenceProblem(message, start + name.end())
    output = _DOTTED.match(text, name.end())
    if output is None or output.group(1) != "output":
        message = f'{_invalid(text)} — Expected ".output" after steps.{name.group(1)}.'
        raise ReferenceProblem(message, start + name.end())
    return Reference(text, "steps", name.group(1), _parse_path(text, output.end(), start))


def _parse_path(text: str, position: int, start: int) -> tuple[str | int, ...]:
    path: list[str | int] = []
    while position < len(text):
        found = _SEGMENT.match(text, position)
        if found is None:
            raise ReferenceProblem(_bad_segment(text, position), start + position)
        path.append(found.group(1) if found.group(1) is not None else int(found.group(2)))
        position = found.end()
    return tuple(path)


def _bad_segment(text: str, position: int) -> str:
    match text[position]:
        case "[":
            return f"{_invalid(text)} — expected [<non-negative integer>] at column {position + 1}."
        case ".":
            return f'{_invalid(text)} — expected an identifier after "." at column {position + 1}.'
        case other:
            return f'{_invalid(text)} — Unexpected character "{other}" at column {position + 1}.'


def _invalid(text: str) -> str:
    return f'Invalid reference "{clip(text, 200)}"'


def _param(reference: Reference, params: Mapping[str, Json]) -> Json:
    if reference.name not in params:
        raise Unresolved(f"params.{reference.name} is not defined in the run's params.")
    return params[reference.name]


def _artifact(reference: Reference, artifacts: Mapping[str, Json]) -> Json:
    if reference.name not in artifacts:
        raise Unresolved(
            f'steps.{reference.name}.output is not available — step "{reference.name}" has no recorded output.'
        )
    return artifacts[reference.name]


def _index(spelled: str, value: Json, index: int) -> Json:
    if not isinstance(value, (list, tuple)):
        raise Unresolved(f"{spelled} is not an array — cannot resolve index [{index}].")
    if index >= len(value):
        raise Unresolved(f"{spelled}[{index}] is out of bounds (array length {len(value)}).")
    return value[index]


def _own(spelled: str, value: Json, name: str, reference: Reference) -> Json:
    if not isinstance(value, Mapping):
        raise Unresolved(f'{spelled} is not an object — cannot resolve property "{name}".')
    if name not in value:
        raise Unresolved(f"{spelled}.{name} is missing (no such property, resolving {reference.text}).")
    return value[name]


_IDENT = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")
_DOTTED = re.compile(r"\.([A-Za-z_][A-Za-z0-9_-]*)")
_SEGMENT = re.compile(r"\.([A-Za-z_][A-Za-z0-9_-]*)|\[([0-9]{1,15})\]")
