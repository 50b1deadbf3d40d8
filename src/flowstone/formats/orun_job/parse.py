"""Source tree → document: the strict shape of a job, key by key."""

from __future__ import annotations

import msgspec

from flowstone.diagnostics import Report
from flowstone.formats.orun.fields import (
    entries_of,
    expression,
    items_of,
    named,
    optional,
    retry,
    scalar_text,
    texts,
    variable,
)
from flowstone.formats.orun.grammar import YAML
from flowstone.formats.orun.header import is_kind, is_meant, name_of
from flowstone.formats.orun_job import grammar
from flowstone.formats.orun_job.document import Approval, Document, Grant, Step
from flowstone.source.cursor import Cursor
from flowstone.source.tree import Node
from flowstone.source.yaml import read_yaml


def parse(text: str, report: Report) -> Document | None:
    """The document of a source, or None where it is no job at all."""
    shape = Report()
    tree = read_yaml(text, YAML, shape)
    document = None
    if tree is not None and (is_kind(tree, grammar.KIND, "job", report) or is_meant(tree, grammar.KIND)):
        document = _document(tree, shape)
    for found in shape.sorted():
        report.add(msgspec.structs.replace(found, message=f"parse job: {found.message}"))
    return document


def _document(tree: Node, shape: Report) -> Document:
    keys = Cursor(tree, "", shape, tree.place).mapping(grammar.ROOT_KEYS)
    name, place = name_of(keys.get("metadata"), tree.place)
    steps = keys.get("steps")
    found = tuple(_step(item, index) for index, item in enumerate(items_of(steps)))
    return Document(name, place, found, steps.place if steps else tree.place)


def _step(cursor: Cursor, index: int) -> Step:
    keys = cursor.mapping(grammar.STEP_KEYS)
    name = optional(keys, "name", scalar_text)
    return Step(
        name=name.text if name else "",
        place=name.place if name else cursor.place,
        label=f"step {name.text}" if name else f"steps[{index}]",
        run=optional(keys, "run", scalar_text),
        workflow=optional(keys, "workflow", scalar_text),
        arguments=entries_of(keys.get("with")),
        grants=named(keys, "connections", grant_of),
        resume=optional(keys, "resume", Cursor.boolean) or False,
        env=named(keys, "env", variable),
        env_inherit=texts(keys, "envInherit"),
        cwd=optional(keys, "cwd", scalar_text),
        outputs=named(keys, "outputs", expression),
        timeout=optional(keys, "timeout", scalar_text),
        retry=optional(keys, "retry", retry),
        on_failure=optional(keys, "onFailure", scalar_text),
        approval=optional(keys, "approval", _approval),
        given=tuple((key, value.place) for key, value in keys.items() if not value.is_null),
    )


def grant_of(name: str, cursor: Cursor) -> Grant:
    """What a step grants under a name."""
    fields = (variable(key, value) for key, value in cursor.mapping().items())
    return Grant(name, cursor.key_place, tuple(field for field in fields if field is not None))


def _approval(cursor: Cursor) -> Approval:
    keys = cursor.mapping(grammar.APPROVAL_KEYS)
    return Approval(
        place=cursor.key_place,
        prompt=optional(keys, "prompt", scalar_text),
        timeout=optional(keys, "timeout", scalar_text),
        on_timeout=optional(keys, "onTimeout", scalar_text),
    )
