"""Input declarations → diagnostics: names, types, patterns, and defaults and values that fit them."""

from __future__ import annotations

import re
from collections.abc import Iterable

from flowstone.diagnostics import Report
from flowstone.formats.orun import grammar
from flowstone.formats.orun.document import Input
from flowstone.formats.orun.inputs import Misfit, fit, pattern_problem
from flowstone.source.cursor import describe, suggest
from flowstone.source.tree import Node, Scalar, plain
from flowstone.values import Json


def check_inputs(inputs: Iterable[Input], report: Report) -> None:
    for declared in inputs:
        if not re.fullmatch(grammar.INPUT_NAME, declared.name):
            message = f"inputs.{declared.name}: name must be a lower-case identifier ({grammar.INPUT_NAME})"
            report.error("invalid-name", message, declared.place)
        if _type(declared, report) and _pattern(declared, report):
            _values(declared, report)


def declared_value(declared: Input, node: Node) -> Json:
    """A default or allowed value as JSON; where text is meant it is the authored spelling."""
    texts = declared.type is None or declared.type.text == "string"
    if isinstance(node, Scalar) and declared.type is not None and texts and node.value is not None:
        return node.text
    value = plain(node)
    if declared.type is not None and declared.type.text == "integer":
        return int(value) if isinstance(value, float) and value.is_integer() else value
    return value


def _type(declared: Input, report: Report) -> bool:
    if declared.type is None or declared.type.text in grammar.INPUT_TYPES:
        return True
    known = ", ".join(grammar.INPUT_TYPES)
    message = f'inputs.{declared.name}: unknown type "{declared.type.text}" ({known})'
    hint = suggest(declared.type.text, grammar.INPUT_TYPES)
    report.error("unknown-type", message, declared.type.place, hint)
    return False


def _pattern(declared: Input, report: Report) -> bool:
    if declared.pattern is None:
        return True
    problem = pattern_problem(declared.pattern.text)
    if problem is not None:
        message = f'inputs.{declared.name}: pattern "{declared.pattern.text}" does not compile: {problem}'
        report.error("invalid-pattern", message, declared.pattern.place)
    return problem is None


def _values(declared: Input, report: Report) -> None:
    """Allowed values fit the type, and the default fits the type, the values and the pattern."""
    kind = declared.type.text if declared.type is not None else None
    allowed: list[Json] = []
    for index, node in enumerate(declared.values or ()):
        value = declared_value(declared, node)
        allowed.append(value)
        try:
            fit(value, kind)
        except Misfit as error:
            message = f"inputs.{declared.name}: values[{index}] {error}, got {describe(node)}"
            report.error("invalid-value", message, node.place)
    if declared.values is not None and not declared.values:
        message = f"inputs.{declared.name}: values must list at least one value"
        report.error("invalid-value", message, declared.place)
    if declared.default is None:
        return
    pattern = declared.pattern.text if declared.pattern is not None else None
    try:
        fit(declared_value(declared, declared.default), kind, allowed or None, pattern)
    except Misfit as error:
        message = f"inputs.{declared.name}: the default {error}"
        report.error("invalid-default", message, declared.default.place)
