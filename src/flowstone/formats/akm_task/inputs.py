"""The `inputs:` of a task → declared inputs; and values given for them → the values of a run."""

from __future__ import annotations

import re
from collections.abc import Mapping as MappingOf
from collections.abc import Sequence as SequenceOf
from typing import Any

import msgspec

from flowstone.expr.schema import validate
from flowstone.expr.schema_check import check_schema
from flowstone.formats.akm_common import rules
from flowstone.formats.akm_common.fields import locate
from flowstone.formats.akm_task import grammar
from flowstone.formats.akm_task.document import TaskInput
from flowstone.plan import bounds
from flowstone.source.cursor import Cursor
from flowstone.source.tree import Mapping
from flowstone.values import Json, clip

_NAME = re.compile(bounds.PARAM_NAME)


class Bound(msgspec.Struct, frozen=True):
    """The values of inputs by name, and where each comes from: `default` or the caller's word."""

    values: dict[str, Json]
    provenance: dict[str, str]


class BindingProblem(ValueError):
    """Values that the declared inputs do not admit; the message has a line for each fault."""


def bind(inputs: SequenceOf[TaskInput], given: MappingOf[str, Json], origin: str, root: str = "inputs") -> Bound:
    """The values of all inputs: what is given, else the defaults; BindingProblem for what does not fit.

    `origin` is the provenance of given values, `root` what paths in messages begin with.
    """
    declared = {one.name: one for one in inputs}
    names = ", ".join(declared) or "(none)"
    faults = [
        f"{root}.{clip(name, 80)} is no declared input; declared inputs: {names}"
        for name in given
        if name not in declared
    ]
    values: dict[str, Json] = {}
    provenance: dict[str, str] = {}
    for name, one in declared.items():
        if name in given:
            values[name], provenance[name] = given[name], origin
            faults += validate(given[name], one.schema, f"{root}.{name}")
        elif one.has_default:
            values[name], provenance[name] = one.default, "default"
        elif one.required:
            faults.append(f"{root}.{name} is required and has no default")
    if faults:
        raise BindingProblem("\n".join(faults))
    return Bound(values, provenance)


def read_inputs(at: Cursor) -> tuple[TaskInput, ...]:
    """All declared inputs, in authored order."""
    found = at.mapping()
    if len(found) > grammar.INPUTS:
        at.error("input-count-limit", f"{at.what} declares {len(found)} inputs; at most {grammar.INPUTS}.")
    read = [_read_input(name, entry) for name, entry in found.items()]
    return tuple(one for one in read if one is not None)


def _read_input(name: str, at: Cursor) -> TaskInput | None:
    if not _NAME.fullmatch(name):
        hint = 'use letters, digits and "_", no digit first'
        at.error("invalid-input-name", f'"{clip(name, 80)}" is no input name.', hint)
    elif name in grammar.RESERVED_INPUTS:
        at.error("reserved-input-name", f'An input cannot be named "{name}": `task run` has a flag of that name.')
    found = at.mapping(grammar.INPUT_KEYS)
    if not isinstance(at.node, Mapping):
        return None
    authored = rules.whole_numbers(at.value())
    if not isinstance(authored, dict):
        return None
    schema = {key: value for key, value in authored.items() if key in found and key not in grammar.OWN_INPUT_KEYS}
    problems = check_schema(schema, f'Input "{name}" schema')
    for problem in problems:
        locate(at, problem.path).error("invalid-schema", problem.message)
    required = found["required"].boolean() if "required" in found else False
    default = authored.get("default")
    if "default" in found:
        if required:
            message = f'Input "{name}" is required and has a default: a default is never used then.'
            found["default"].error("default-of-required", message, "leave one of them out")
        faults = [] if problems else validate(default, schema, "default")
        for fault in faults:
            found["default"].error("invalid-default", f'Input "{name}": {fault}.')
    return TaskInput(name, schema, bool(required), "default" in found, default)


def as_schema(one: TaskInput) -> dict[str, Any]:
    """The schema of an input as a param has it: with its default."""
    return {**one.schema, "default": one.default} if one.has_default else dict(one.schema)
