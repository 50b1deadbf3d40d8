"""Source tree → document: the strict shape of an orun workflow, key by key.

What is wrong with the shape is reported as `parse workflow: …`; what a well-shaped file may not
say is the business of `check`.
"""

from __future__ import annotations

import msgspec

from flowstone.diagnostics import Report
from flowstone.formats.orun import grammar
from flowstone.formats.orun.document import Connection, Document, Input, Poll, Step
from flowstone.formats.orun.fields import (
    entries_of,
    expression,
    items_of,
    mapping_of,
    named,
    optional,
    retry,
    scalar_text,
    texts,
    variable,
    whole_number,
)
from flowstone.formats.orun.header import is_kind, is_meant, name_of
from flowstone.source.cursor import Cursor
from flowstone.source.tree import Node, Sequence
from flowstone.source.yaml import read_yaml


def parse(text: str, report: Report) -> Document | None:
    """The document of a source, or None where it is no orun workflow at all."""
    shape = Report()
    tree = read_yaml(text, grammar.YAML, shape)
    document = None
    if tree is not None and (is_kind(tree, grammar.KIND, "workflow", report) or is_meant(tree, grammar.KIND)):
        document = _document(tree, shape)
    for found in shape.sorted():
        report.add(msgspec.structs.replace(found, message=f"parse workflow: {found.message}"))
    return document


def _document(tree: Node, shape: Report) -> Document:
    root = Cursor(tree, "", shape, tree.place)
    keys = root.mapping(grammar.ROOT_KEYS)
    name, place = name_of(keys.get("metadata"), tree.place)
    width = keys.get("maxParallel")
    steps = keys.get("steps")
    return Document(
        name=name,
        place=place,
        steps=tuple(_step(item, index) for index, item in enumerate(items_of(steps))),
        inputs=named(keys, "inputs", _input),
        connections=named(keys, "connections", _connection),
        outputs=named(keys, "outputs", expression),
        max_parallel=None if width is None or width.is_null else whole_number(width),
        max_parallel_place=width.place if width else place,
        steps_place=steps.place if steps else tree.place,
    )


def _input(name: str, cursor: Cursor) -> Input:
    keys = mapping_of(cursor, grammar.INPUT_KEYS)
    default, values = keys.get("default"), keys.get("values")
    description = optional(keys, "description", scalar_text)
    listed = None if values is None or values.is_null else tuple(item.node for item in values.items())
    return Input(
        name=name,
        place=cursor.key_place,
        type=optional(keys, "type", scalar_text),
        required=optional(keys, "required", Cursor.boolean) or False,
        default=None if default is None or default.is_null else default.node,
        values=listed,
        pattern=optional(keys, "pattern", scalar_text),
        secret=optional(keys, "secret", Cursor.boolean) or False,
        description=description.text if description else None,
    )


def _connection(name: str, cursor: Cursor) -> Connection:
    keys = mapping_of(cursor, grammar.CONNECTION_KEYS)
    return Connection(name, cursor.key_place, optional(keys, "type", scalar_text))


def _step(cursor: Cursor, index: int) -> Step:
    keys = cursor.mapping(grammar.STEP_KEYS)
    name = optional(keys, "name", scalar_text)
    arguments = keys.get("with")
    return Step(
        name=name.text if name else "",
        place=name.place if name else cursor.place,
        label=f"step {name.text}" if name else f"steps[{index}]",
        needs=texts(keys, "needs"),
        when=optional(keys, "if", scalar_text),
        runs=_runs(keys.get("run")),
        run=texts(keys, "run"),
        action=optional(keys, "action", scalar_text),
        workflow=optional(keys, "workflow", scalar_text),
        arguments=entries_of(arguments),
        env=named(keys, "env", variable),
        env_inherit=texts(keys, "envInherit"),
        cwd=optional(keys, "cwd", scalar_text),
        connection=optional(keys, "connection", scalar_text),
        timeout=optional(keys, "timeout", scalar_text),
        retry=optional(keys, "retry", retry),
        poll=optional(keys, "poll", _poll),
        continue_on_error=optional(keys, "continueOnError", Cursor.boolean) or False,
        outputs=named(keys, "outputs", expression),
        given=tuple((key, value.place) for key, value in keys.items() if not value.is_null),
    )


def _runs(cursor: Cursor | None) -> bool:
    return cursor is not None and not cursor.is_null and cursor.node != Sequence((), cursor.node.place)


def _poll(cursor: Cursor) -> Poll:
    keys = cursor.mapping(grammar.POLL_KEYS)
    return Poll(
        place=cursor.key_place,
        interval=optional(keys, "interval", scalar_text),
        timeout=optional(keys, "timeout", scalar_text),
        until=optional(keys, "until", scalar_text),
    )
