"""Source tree → document: the strict shape of an orun workflow, key by key.

What is wrong with the shape is reported as `parse workflow: …`; what a well-shaped file may not
say is the business of `check`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import msgspec

from flowstone.diagnostics import WHOLE_FILE, Place, Report
from flowstone.formats.orun import grammar
from flowstone.formats.orun.document import Connection, Document, Input, Named, Poll, Retry, Step
from flowstone.source.cursor import Cursor, describe
from flowstone.source.tree import Entry, Mapping, Node, Scalar, Sequence
from flowstone.source.yaml import read_yaml

Read = TypeVar("Read")
Keys = dict[str, Cursor]


def parse(text: str, report: Report) -> Document | None:
    """The document of a source, or None where it is no orun workflow at all."""
    shape = Report()
    tree = read_yaml(text, grammar.YAML, shape)
    document = None
    if tree is not None and (_is_workflow(tree, report) or _is_meant_as_one(tree)):
        document = _document(tree, shape)
    for found in shape.sorted():
        report.add(msgspec.structs.replace(found, message=f"parse workflow: {found.message}"))
    return document


def _is_workflow(tree: Node, report: Report) -> bool:
    version, kind = _shown(tree, "apiVersion"), _shown(tree, "kind")
    if version == grammar.API_VERSION and kind == grammar.KIND:
        return True
    place = tree.place
    if isinstance(tree, Mapping):
        wrong = tree.entry("apiVersion" if version != grammar.API_VERSION else "kind")
        place = wrong.value.place if wrong is not None else place
    if version == grammar.OLD_API_VERSION:
        message = f"{version} is not supported; there is no converter, and the language is another one"
        report.error("old-api-version", message, place, f"write apiVersion: {grammar.API_VERSION}")
        return False
    message = f'not a workflow: want apiVersion {grammar.API_VERSION} kind {grammar.KIND}, got "{version}" "{kind}"'
    empty = isinstance(tree, Scalar) and not tree.text
    report.error(
        "not-a-workflow", message, WHOLE_FILE if empty else place, None if version or kind else _OF_NO_LANGUAGE
    )
    return False


_OF_NO_LANGUAGE = (
    f"begin an orun workflow with `apiVersion: {grammar.API_VERSION}` and `kind: {grammar.KIND}`; an akm workflow is a "
    ".yml file with `name`, `on` and `jobs`, or a .md file"
)
"""The author of a file without either key may have meant a workflow of another language."""


def _is_meant_as_one(tree: Node) -> bool:
    """A misspelt or forgotten `apiVersion` or `kind` hides no further mistakes; another language has none of ours."""
    from difflib import SequenceMatcher

    def close(found: str, meant: str) -> bool:
        return SequenceMatcher(None, found.lower(), meant.lower()).ratio() > 0.7

    version, kind = _shown(tree, "apiVersion"), _shown(tree, "kind")
    steps = isinstance(tree, Mapping) and tree.entry("steps") is not None
    if not version or not kind:
        return steps and (version == grammar.API_VERSION or kind == grammar.KIND)
    return version != grammar.OLD_API_VERSION and close(version, grammar.API_VERSION) and close(kind, grammar.KIND)


def _shown(tree: Node, key: str) -> str:
    value = tree.get(key) if isinstance(tree, Mapping) else None
    return value.text[:80] if isinstance(value, Scalar) and value.value is not None else ""


def _document(tree: Node, shape: Report) -> Document:
    root = Cursor(tree, "", shape, tree.place)
    keys = root.mapping(grammar.ROOT_KEYS)
    name, place = _metadata(keys.get("metadata"), tree.place)
    width = keys.get("maxParallel")
    steps = keys.get("steps")
    return Document(
        name=name,
        place=place,
        steps=tuple(_step(item, index) for index, item in enumerate(_items(steps))),
        inputs=_named(keys, "inputs", _input),
        connections=_named(keys, "connections", _connection),
        outputs=_named(keys, "outputs", _expression),
        max_parallel=None if width is None or width.is_null else _integer(width),
        max_parallel_place=width.place if width else place,
        steps_place=steps.place if steps else tree.place,
    )


def _metadata(cursor: Cursor | None, root: Place) -> tuple[str, Place]:
    name = _mapping(cursor, grammar.METADATA_KEYS).get("name")
    found = _text(name) if name is not None else None
    if found is None:
        return "", name.place if name else cursor.place if cursor else root
    return found.text, found.place


def _input(name: str, cursor: Cursor) -> Input:
    keys = _mapping(cursor, grammar.INPUT_KEYS)
    default, values = keys.get("default"), keys.get("values")
    description = _optional(keys, "description", _text)
    listed = None if values is None or values.is_null else tuple(item.node for item in values.items())
    return Input(
        name=name,
        place=cursor.key_place,
        type=_optional(keys, "type", _text),
        required=_optional(keys, "required", Cursor.boolean) or False,
        default=None if default is None or default.is_null else default.node,
        values=listed,
        pattern=_optional(keys, "pattern", _text),
        secret=_optional(keys, "secret", Cursor.boolean) or False,
        description=description.text if description else None,
    )


def _connection(name: str, cursor: Cursor) -> Connection:
    keys = _mapping(cursor, grammar.CONNECTION_KEYS)
    return Connection(name, cursor.key_place, _optional(keys, "type", _text))


def _expression(name: str, cursor: Cursor) -> Named | None:
    text = _text(cursor, null=True)
    return Named(name, cursor.key_place, text) if text is not None else None


def _variable(name: str, cursor: Cursor) -> Named | None:
    text = _text(cursor)
    return Named(name, cursor.key_place, text) if text is not None else None


def _step(cursor: Cursor, index: int) -> Step:
    keys = cursor.mapping(grammar.STEP_KEYS)
    name = _optional(keys, "name", _text)
    arguments = keys.get("with")
    return Step(
        name=name.text if name else "",
        place=name.place if name else cursor.place,
        label=f"step {name.text}" if name else f"steps[{index}]",
        needs=_texts(keys, "needs"),
        when=_optional(keys, "if", _text),
        runs=_runs(keys.get("run")),
        run=_texts(keys, "run"),
        action=_optional(keys, "action", _text),
        workflow=_optional(keys, "workflow", _text),
        arguments=_entries(arguments),
        env=_named(keys, "env", _variable),
        env_inherit=_texts(keys, "envInherit"),
        cwd=_optional(keys, "cwd", _text),
        connection=_optional(keys, "connection", _text),
        timeout=_optional(keys, "timeout", _text),
        retry=_optional(keys, "retry", _retry),
        poll=_optional(keys, "poll", _poll),
        continue_on_error=_optional(keys, "continueOnError", Cursor.boolean) or False,
        outputs=_named(keys, "outputs", _expression),
        given=tuple((key, value.place) for key, value in keys.items() if not value.is_null),
    )


def _runs(cursor: Cursor | None) -> bool:
    return cursor is not None and not cursor.is_null and cursor.node != Sequence((), cursor.node.place)


def _retry(cursor: Cursor) -> Retry:
    keys = cursor.mapping(grammar.RETRY_KEYS)
    return Retry(
        place=cursor.key_place,
        max_retries=_optional(keys, "maxRetries", _integer),
        base_delay=_optional(keys, "baseDelay", _text),
        kind=_optional(keys, "kind", _text),
    )


def _poll(cursor: Cursor) -> Poll:
    keys = cursor.mapping(grammar.POLL_KEYS)
    return Poll(
        place=cursor.key_place,
        interval=_optional(keys, "interval", _text),
        timeout=_optional(keys, "timeout", _text),
        until=_optional(keys, "until", _text),
    )


def _optional(keys: Keys, key: str, read: Callable[[Cursor], Read | None]) -> Read | None:
    """What `read` makes of a key; None where it is absent or null."""
    cursor = keys.get(key)
    return None if cursor is None or cursor.is_null else read(cursor)


def _named(keys: Keys, key: str, read: Callable[[str, Cursor], Read | None]) -> tuple[Read, ...]:
    found = (read(name, cursor) for name, cursor in _mapping(keys.get(key)).items())
    return tuple(value for value in found if value is not None)


def _mapping(cursor: Cursor | None, allowed: tuple[str, ...] | None = None) -> Keys:
    return {} if cursor is None or cursor.is_null else cursor.mapping(allowed)


def _items(cursor: Cursor | None) -> list[Cursor]:
    return [] if cursor is None or cursor.is_null else cursor.items()


def _entries(cursor: Cursor | None) -> tuple[Entry, ...]:
    _mapping(cursor)
    return cursor.node.entries if cursor is not None and isinstance(cursor.node, Mapping) else ()


def _texts(keys: Keys, key: str) -> tuple[Scalar, ...]:
    found = (_text(item) for item in _items(keys.get(key)))
    return tuple(text for text in found if text is not None)


def _text(cursor: Cursor, null: bool = False) -> Scalar | None:
    """A scalar as text, as it is spelt: `1.50` and `true` are texts where text is meant."""
    node = cursor.node
    if isinstance(node, Scalar) and (null or node.value is not None):
        return node if node.value is not None else Scalar("", "", node.place)
    hint = "quote it" if isinstance(node, (Mapping, Sequence)) else 'write "" for an empty text'
    cursor.error("text-required", f"{cursor.what} must be a text, got {describe(node)}.", hint)
    return None


def _integer(cursor: Cursor) -> int | None:
    node = cursor.node
    if isinstance(node, Scalar) and isinstance(node.value, int) and not isinstance(node.value, bool):
        return node.value
    cursor.error("integer-required", f"{cursor.what} must be an integer, got {describe(node)}.")
    return None
