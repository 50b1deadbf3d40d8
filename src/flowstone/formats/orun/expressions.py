"""Which texts of a document are expressions, what they may read, and what is wrong with them.

Visibility goes by the parsed expression (orun decision 13): a step reads its ancestors only, the
workflow's outputs any step, and inputs and connections must be declared.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import msgspec

from flowstone.diagnostics import Place, Report
from flowstone.expr.cel import (
    EVERYWHERE,
    POLL_UNTIL,
    STEP_OUTPUTS,
    CelEnvironment,
    CelRefused,
    CompiledCel,
    compile_cel,
)
from flowstone.expr.cel_reads import Read
from flowstone.expr.templates import OPEN, parse_template
from flowstone.formats.orun.document import Document, Step
from flowstone.formats.orun.places import Places
from flowstone.source import tree
from flowstone.source.tree import Node, Scalar, Sequence


class Authored(msgspec.Struct, frozen=True):
    """A text that is an expression, or a template that may hold some; `label` says where it stands."""

    label: str
    text: Scalar
    environment: CelEnvironment = EVERYWHERE
    template: bool = True


def check_expressions(document: Document, before: Mapping[str, frozenset[str]], places: Places, report: Report) -> None:
    """Compile every expression of the file and check what it reads; `before` gives the ancestors."""
    checker = _Checker(document, places, report)
    for step in document.steps:
        visible = before.get(step.name, frozenset())
        for authored in texts_of(step):
            label = f"{step.label}: {authored.label}"
            checker.check(msgspec.structs.replace(authored, label=label), visible, "a declared upstream step")
    every = frozenset(step.name for step in document.steps)
    for output in document.outputs:
        authored = Authored(f"outputs.{output.name}", output.text, EVERYWHERE, False)
        checker.check(authored, every, "a declared step")


def texts_of(step: Step) -> Iterator[Authored]:
    """The texts of a step that hold expressions, in the order of the reference."""
    if step.when is not None:
        yield Authored("if", step.when, template=False)
    for index, word in enumerate(step.run):
        yield Authored(f"run[{index}]", word)
    for entry in step.arguments:
        yield from _inside(f"with.{entry.name}", entry.value)
    for variable in step.env:
        yield Authored(f"env.{variable.name}", variable.text)
    if step.cwd is not None:
        yield Authored("cwd", step.cwd)
    if step.poll is not None and step.poll.until is not None:
        yield Authored("poll.until", step.poll.until, POLL_UNTIL, False)
    for output in step.outputs:
        yield Authored(f"outputs.{output.name}", output.text, STEP_OUTPUTS, False)


def _inside(label: str, node: Node) -> Iterator[Authored]:
    """The texts of a value, to any depth; numbers and the like hold no expressions."""
    match node:
        case Scalar(value=str()):
            yield Authored(label, node)
        case Scalar():
            pass
        case Sequence(items=items):
            for index, item in enumerate(items):
                yield from _inside(f"{label}[{index}]", item)
        case tree.Mapping(entries=entries):
            for entry in entries:
                yield from _inside(f"{label}.{entry.name}", entry.value)


class _Checker:
    def __init__(self, document: Document, places: Places, report: Report) -> None:
        self._inputs = frozenset(declared.name for declared in document.inputs)
        self._connections = frozenset(declared.name for declared in document.connections)
        self._places = places
        self._report = report

    def check(self, authored: Authored, visible: frozenset[str], wanted: str) -> None:
        if authored.template:
            self._template(authored, visible, wanted)
            return
        match compile_cel(authored.text.text.strip(), authored.environment):
            case CompiledCel() as compiled:
                self._reads(authored, compiled, self._blanks(authored), visible, wanted)
            case CelRefused(problems=problems):
                braces = OPEN in authored.text.text
                hint = "this is an expression already: leave {{ }} out" if braces else None
                for problem in problems:
                    place = self._places.at(authored.text, problem.offset + self._blanks(authored))
                    self._error("invalid-expression", f"{authored.label}: {problem.message}", place, hint)

    def _template(self, authored: Authored, visible: frozenset[str], wanted: str) -> None:
        if OPEN not in authored.text.text:
            return
        parsed = parse_template(authored.text.text, authored.environment)
        for problem in parsed.problems:
            place = self._places.at(authored.text, problem.offset)
            self._error("invalid-expression", f"{authored.label}: {problem.message}", place)
        for compiled, offset in parsed.compiled:
            self._reads(authored, compiled, offset, visible, wanted)

    def _reads(
        self, authored: Authored, compiled: CompiledCel, offset: int, visible: frozenset[str], wanted: str
    ) -> None:
        for read in compiled.reads:
            complaint = self._complaint(read, visible, wanted)
            if complaint is not None:
                place = self._places.at(authored.text, offset + read.offset)
                self._error("invisible-reference", f"{authored.label}: references {complaint}", place)

    def _complaint(self, read: Read, visible: frozenset[str], wanted: str) -> str | None:
        match read:
            case Read(name=None):
                return None
            case Read(root="steps", name=str() as name) if name not in visible:
                return f"steps.{name}, which is not {wanted}"
            case Read(root="inputs", name=str() as name) if name not in self._inputs:
                return f"undeclared inputs.{name}"
            case Read(root="connections", name=str() as name) if name not in self._connections:
                return f"undeclared connections.{name}"
            case _:
                return None

    @staticmethod
    def _blanks(authored: Authored) -> int:
        return len(authored.text.text) - len(authored.text.text.lstrip())

    def _error(self, code: str, message: str, place: Place, hint: str | None = None) -> None:
        self._report.error(code, message, place, hint)
