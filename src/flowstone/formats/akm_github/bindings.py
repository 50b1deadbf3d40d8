"""The `with:` of a GitHub-shaped step: bindings of declared inputs, or the builtin's arguments."""

from __future__ import annotations

import re
from typing import Any

from flowstone.expr.refs import ReferenceProblem, parse_reference
from flowstone.formats.akm_common.fields import read_object
from flowstone.formats.akm_common.links import Links, Reading
from flowstone.formats.akm_common.targets import Family, classify_uses
from flowstone.formats.akm_github import grammar
from flowstone.formats.akm_prompts.template import TOKEN, foreign_construct
from flowstone.source.cursor import Cursor
from flowstone.source.tree import Mapping, Scalar
from flowstone.values import clip

_KEY = re.compile(grammar.WITH_KEY)


def read_bindings(at: Cursor, label: str, step: int, links: Links) -> dict[str, Any] | None:
    """Bindings of a task's or a child workflow's inputs: any JSON, or `{from: reference}`.

    `label` names step and target in messages.
    """
    value = read_object(at)
    if value is None:
        return None
    for name, entry in _checked_keys(at).items():
        if isinstance(entry.node, Mapping) and entry.node.get("from") is not None:
            _check_from(entry, entry.node, f"{label} with.{name}", step, links)
    return value


def _check_from(at: Cursor, node: Mapping, label: str, step: int, links: Links) -> None:
    source = node.get("from")
    if len(node.entries) != 1 or not isinstance(source, Scalar) or not isinstance(source.value, str):
        message = f'{label}: "from" must be the only key, and its value a reference in text'
        at.error("input-binding-invalid", message, 'write { from: "steps.<id>.output" }')
        return
    try:
        reference = parse_reference(source.value)
    except ReferenceProblem as problem:
        at.error("input-binding-invalid", f"{label}: {problem.message}")
        return
    if reference.root == "params":
        message = f'{label}: "{reference.text}" does not name a declared workflow param; declared params: (none)'
        at.error("input-binding-invalid", message)
        return
    links.readings.append(Reading(label, reference, at.place, step, "input-binding"))


def read_command_arguments(at: Cursor) -> dict[str, str] | None:
    """What `akm/command` takes: exactly one of ref and content, and optional arguments."""
    found = at.mapping()
    if not isinstance(at.node, Mapping):
        return None
    problem = _arguments_problem(found)
    if problem is not None:
        hint = "write { ref: commands/<name> } or { content: text }, with arguments if needed"
        at.error("builtin-command-inputs", f"{at.what} {problem}", hint)
        return None
    return {name: entry.node.value for name, entry in found.items() if isinstance(entry.node, Scalar)}


def _arguments_problem(found: dict[str, Cursor]) -> str | None:
    unknown = next((name for name in found if name not in grammar.COMMAND_KEYS), None)
    if unknown is not None:
        return f'holds "{clip(unknown, 80)}"; the keys are {", ".join(grammar.COMMAND_KEYS)}'
    if ("ref" in found) == ("content" in found):
        return 'must hold exactly one of "ref" and "content"'
    for name, entry in found.items():
        if not isinstance(entry.node, Scalar) or not isinstance(entry.node.value, str):
            return f'must have a string as "{name}"'
    problem = _template_problem(found)
    if problem is not None:
        return problem
    ref = found.get("ref")
    if ref is not None and isinstance(ref.node, Scalar) and classify_uses(ref.node.text) is not Family.COMMAND:
        return f'must name a command as "ref" (commands/<name>), got "{clip(ref.node.text, 80)}"'
    return None


def _template_problem(found: dict[str, Cursor]) -> str | None:
    """What a template holds that is never replaced; a content that takes no arguments stands as it is."""
    content = found["content"].node if "content" in found else None
    if not isinstance(content, Scalar) or ("arguments" not in found and TOKEN not in content.text):
        return None
    foreign = foreign_construct(content.text)
    return None if foreign is None else f"holds {foreign[0]}"


def read_scalars(at: Cursor) -> dict[str, Any]:
    """Values of targets that are no binding surface: scalars or null."""
    values = {}
    for name, entry in _checked_keys(at).items():
        if isinstance(entry.node, Scalar):
            values[name] = entry.value()
        else:
            entry.error("scalar-required", f"{entry.what} must be a string, number, boolean or null")
    return values


def _checked_keys(at: Cursor) -> dict[str, Cursor]:
    found = at.mapping()
    for name, entry in found.items():
        if not _KEY.fullmatch(name):
            entry.error("invalid-mapping-key", f'{at.what}: "{clip(name, 80)}" is no input name')
    return found
