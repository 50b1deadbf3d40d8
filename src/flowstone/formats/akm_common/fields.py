"""Readers of the values that several parts of an akm source hold: schemas, references, timeouts.

Each reads at a cursor, reports what is wrong at its place, and returns None (or UNSET) then.
"""

from __future__ import annotations

from collections.abc import Sequence as SequenceOf
from typing import Any

from msgspec import UNSET

from flowstone.diagnostics import Place
from flowstone.expr.duration import DurationProblem, parse_timeout
from flowstone.expr.model import Reference
from flowstone.expr.refs import ReferenceProblem, parse_reference
from flowstone.expr.schema_check import check_schema
from flowstone.formats.akm_common import rules
from flowstone.formats.akm_common.document import Span, Timeout
from flowstone.formats.akm_common.links import Links, Reading
from flowstone.source.cursor import Cursor
from flowstone.source.tree import Mapping, Node, Scalar, Sequence
from flowstone.values import MAX_DEPTH, Json, depth_of

SCHEMA_DEPTH = 122
"""Levels of JSON in one schema: 64 of schemas with a keyword each, and what a frozen plan can hold."""


def read_schema(at: Cursor, label: str) -> dict[str, Any] | None:
    """A JSON Schema of the enforced subset, of at most 256 KiB; `label` names it in messages."""
    at = at.named(label)
    if not isinstance(at.node, Mapping):
        at.mapping()
        return None
    schema = _json(at)
    if schema is None:
        return None
    if depth_of(schema) > SCHEMA_DEPTH:
        at.error("invalid-schema", f"{label} is nested more than {SCHEMA_DEPTH} levels of JSON deep (64 of schemas).")
        return None
    problems = check_schema(schema, label)
    for problem in problems:
        locate(at, problem.path).error("invalid-schema", problem.message)
    return None if problems else schema


def read_object(at: Cursor) -> dict[str, Any] | None:
    """Any mapping of JSON values, at most 64 levels deep."""
    if not isinstance(at.node, Mapping):
        at.mapping()
        return None
    value: dict[str, Any] | None = _json(at)
    if value is not None and depth_of(value) > MAX_DEPTH:
        at.error("json-too-deep", f"{at.what} is nested more than {MAX_DEPTH} levels deep.")
        return None
    return value


def _json(at: Cursor) -> Json:
    return rules.whole_numbers(at.value())


def read_reference(at: Cursor, roots: SequenceOf[str]) -> Reference | None:
    """A bare reference whose root is one of `roots`."""
    text = at.text()
    if text is None:
        return None
    try:
        parsed = parse_reference(text)
    except ReferenceProblem as problem:
        at.error("invalid-reference", f"{at.what}: {problem.message}")
        return None
    if parsed.root not in roots:
        message = f'{at.what} must name the output of a step, got "{parsed.text}".'
        at.error("reference-to-param", message, "write steps.<id>.output; params reach every unit anyway")
        return None
    return parsed


def read_required_reference(at: Cursor, found: dict[str, Cursor], key: str, links: Links, step: int) -> str | None:
    """The reference that a map or route must have under `key`; it is noted in `links`."""
    if key not in found:
        hint = f"write {key}: params.<name> or {key}: steps.<id>.output"
        at.error("missing-key", f'{at.what} requires "{key}": a reference.', hint)
        return None
    reference = read_reference(found[key], ("params", "steps"))
    if reference is None:
        return None
    links.readings.append(Reading(found[key].what, reference, found[key].place, step))
    return reference.text


def read_timeout(at: Cursor) -> Timeout:
    """A bound in milliseconds, or None for `none`."""
    value = at.node.value if isinstance(at.node, Scalar) else None
    try:
        return parse_timeout(value)
    except DurationProblem as problem:
        at.error("invalid-timeout", f"{at.what} {problem}.", 'write milliseconds, "30s", "10m" or none')
        return UNSET


def read_engine(at: Cursor) -> str | None:
    text = at.text(empty=False)
    if text is None:
        return None
    problem = rules.engine_problem(text.strip())
    if problem:
        at.error("invalid-engine-name", f"{at.what} {problem}.")
        return None
    return text.strip()


def read_llm(at: Cursor) -> dict[str, Any] | None:
    """An `llm:` bag; an empty one counts as absent."""
    at.mapping(rules.LLM_KEYS)
    bag = read_object(at)
    if bag is None:
        return None
    problems = list(rules.llm_problems(bag))
    for path, message in problems:
        locate(at, path).error("invalid-llm", f"{at.what}: {message}.")
    return None if problems else bag or None


def read_trimmed(at: Cursor) -> str | None:
    """A text that is not blank, without blanks around it."""
    text = at.text(empty=False)
    return None if text is None else text.strip()


def locate(at: Cursor, path: SequenceOf[str | int]) -> Cursor:
    """The cursor at a path below `at`, or the nearest one above that exists."""
    for part in path:
        inner: Cursor | None = None
        if isinstance(at.node, Mapping) and isinstance(part, str):
            inner = at.mapping().get(part)
        elif isinstance(at.node, Sequence) and isinstance(part, int):
            inner = at.items()[part] if part < len(at.node.items) else None
        if inner is None:
            return at
        at = inner
    return at


def span_of(path: str, node: Node) -> Span:
    """From the node's own place to the place of the last node inside it."""
    return Span(path=path, start=node.place, end=_last_place(node))


def _last_place(node: Node) -> Place:
    while True:
        match node:
            case Mapping(entries=entries) if entries:
                node = entries[-1].value
            case Sequence(items=items) if items:
                node = items[-1]
            case _:
                return node.place
