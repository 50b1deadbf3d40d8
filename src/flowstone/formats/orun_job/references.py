"""Texts of a job with `${{ steps.X.outputs.Y }}` in them → their parts, or what is wrong with them.

That reference is all that may stand there: what a step hands on is computed where it is declared.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import msgspec

from flowstone.expr.cel import EVERYWHERE, CompiledCel, compile_cel
from flowstone.expr.model import Cel, Template, Text
from flowstone.formats.orun_job.document import Step
from flowstone.source import tree
from flowstone.source.tree import Node, Scalar, Sequence

OPEN, CLOSE = "${{", "}}"
_REFERENCE = re.compile(r"steps\.([a-z][a-z0-9-]*)\.outputs\.([a-zA-Z_][a-zA-Z0-9_-]*)")


class Reference(msgspec.Struct, frozen=True):
    """An output of an earlier step; `offset` is where it begins in the text."""

    step: str
    output: str
    offset: int

    @property
    def cel(self) -> Cel:
        compiled = compile_cel(f'steps["{self.step}"].outputs["{self.output}"]', EVERYWHERE)
        assert isinstance(compiled, CompiledCel)
        return compiled.model


class Misread(msgspec.Struct, frozen=True):
    """What stands at an offset and is no reference."""

    message: str
    offset: int


def split(text: str) -> Iterator[str | Reference | Misread]:
    """The parts of a text in order; one that has no end is the last."""
    at = 0
    while (start := text.find(OPEN, at)) >= 0:
        if start > at:
            yield text[at:start]
        end = text.find(CLOSE, start)
        if end < 0:
            yield Misread("${{ without }}: the reference has no end", start)
            return
        yield _reference(text[start + len(OPEN) : end], start)
        at = end + len(CLOSE)
    if at < len(text):
        yield text[at:]


def _reference(inner: str, offset: int) -> Reference | Misread:
    found = _REFERENCE.fullmatch(inner.strip())
    if found is None:
        shown = " ".join(inner.split())[:80]
        return Misread(f"${{{{ {shown} }}}} is no reference to an output of an earlier step", offset)
    return Reference(found[1], found[2], offset)


def filled(text: str) -> Text:
    """The text of a sound job as plans hold it; of a reference alone the value keeps its type."""
    parts = tuple(part.cel if isinstance(part, Reference) else str(part) for part in split(text))
    return Template(parts) if any(isinstance(part, Cel) for part in parts) else text


def texts_of(step: Step) -> Iterator[tuple[str, Scalar]]:
    """The texts of a step in which references may stand, each with what to call it."""
    if step.run is not None:
        yield "run", step.run
    for entry in step.arguments:
        yield from _inside(f"with.{entry.name}", entry.value)
    for own in step.env:
        yield f"env.{own.name}", own.text
    if step.cwd is not None:
        yield "cwd", step.cwd
    if step.approval is not None and step.approval.prompt is not None:
        yield "approval.prompt", step.approval.prompt


def _inside(label: str, node: Node) -> Iterator[tuple[str, Scalar]]:
    match node:
        case Scalar(value=str()):
            yield label, node
        case Scalar():
            pass
        case Sequence(items=items):
            for index, item in enumerate(items):
                yield from _inside(f"{label}[{index}]", item)
        case tree.Mapping(entries=entries):
            for entry in entries:
                yield from _inside(f"{label}.{entry.name}", entry.value)
