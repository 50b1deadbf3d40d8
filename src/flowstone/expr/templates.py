"""Text with `{{ }}` segments → parts → text or a native value.

A segment ends where the expression grammar ends it (orun decision 14): at the first `}}` that is
neither inside a literal or comment nor closes a map of the expression.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import msgspec

from flowstone.expr.cel import CACHED, CelEnvironment, CelRefused, CompiledCel, compile_cel
from flowstone.expr.cel_errors import CelProblem
from flowstone.expr.cel_values import stringify
from flowstone.expr.lexer import tokens
from flowstone.expr.model import Cel, Template, Text

OPEN, CLOSE = "{{", "}}"


class Segment(msgspec.Struct, frozen=True):
    """An expression between `{{` and `}}`; `offset` is where its source starts in the text."""

    source: str
    offset: int


class ParsedTemplate(msgspec.Struct, frozen=True):
    """`text` is None when there are problems; their offsets, like those of reads, count in the text.

    `compiled` holds each segment's expression with its offset, for the check of what it reads.
    """

    text: Text | None
    problems: tuple[CelProblem, ...] = ()
    compiled: tuple[tuple[CompiledCel, int], ...] = ()


@lru_cache(maxsize=CACHED)
def parse_template(text: str, environment: CelEnvironment) -> ParsedTemplate:
    """Compile the segments of a text; text without any stays plain text. Kept, as expressions are."""
    parts, unclosed = split_template(text)
    problems: list[CelProblem] = []
    compiled: list[tuple[CompiledCel, int]] = []
    filled: list[str | Cel] = []
    for part in parts:
        if isinstance(part, str):
            filled.append(part)
            continue
        match compile_cel(part.source, environment):
            case CompiledCel() as expression:
                compiled.append((expression, part.offset))
                filled.append(expression.model)
            case CelRefused(problems=found):
                problems += [CelProblem(one.message, one.offset + part.offset) for one in found]
    if unclosed is not None:
        problems.append(CelProblem("{{ without }}: the expression has no end", unclosed))
    if problems:
        return ParsedTemplate(None, tuple(problems), tuple(compiled))
    return ParsedTemplate(Template(tuple(filled)) if compiled else text, (), tuple(compiled))


def split_template(text: str) -> tuple[tuple[str | Segment, ...], int | None]:
    """The parts of a text, and the offset of a `{{` that has no end, if there is one."""
    parts: list[str | Segment] = []
    at = 0
    while (start := text.find(OPEN, at)) >= 0:
        end = _end(text, start + len(OPEN))
        if end is None:
            return tuple(parts), start
        if start > at:
            parts.append(text[at:start])
        inner = text[start + len(OPEN) : end]
        blanks = len(inner) - len(inner.lstrip())
        parts.append(Segment(inner.strip(), start + len(OPEN) + blanks))
        at = end + len(CLOSE)
    if at < len(text):
        parts.append(text[at:])
    return tuple(parts), None


def render(template: Template, evaluate: Callable[[Cel], Any]) -> Any:
    """The value of a template: of a single segment its native value, else text."""
    only = template.parts[0]
    if len(template.parts) == 1 and isinstance(only, Cel):
        return evaluate(only)
    parts = (part if isinstance(part, str) else stringify(evaluate(part)) for part in template.parts)
    return "".join(parts)


def _end(text: str, start: int) -> int | None:
    """Where the `}}` of a segment stands whose expression begins at `start`."""
    depth = 0
    for token in tokens(text, start):
        sign = text[token.start : token.end]
        if sign == "{":
            depth += 1
        elif sign == "}" and depth:
            depth -= 1
        elif sign == "}" and text.startswith(CLOSE, token.start):
            return token.start
    return None
