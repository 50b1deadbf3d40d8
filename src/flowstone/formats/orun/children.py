"""Nested workflow files → diagnostics of the file that nests them: existence, cycles, validity.

A file is known by its real path, so that a cycle is found through symlinks and `./` spellings.
"""

from __future__ import annotations

import os.path
from collections.abc import Callable

import msgspec

from flowstone.diagnostics import Diagnostic, Report, errors_of
from flowstone.errors import SourceError
from flowstone.expr.templates import OPEN
from flowstone.formats.orun import grammar
from flowstone.formats.orun.check import check
from flowstone.formats.orun.document import Document, Step
from flowstone.formats.orun.parse import parse
from flowstone.formats.orun.places import Places
from flowstone.plan.model import SourceFile
from flowstone.source.file import SourceText
from flowstone.source.tree import Scalar

Load = Callable[[str], SourceText]
REMOTE = ("github:", "https://", "http://")


class Child(msgspec.Struct, frozen=True):
    """A nested file: `document` is None where it is no workflow; `errors` are its own, all levels."""

    file: SourceFile
    document: Document | None
    errors: tuple[Diagnostic, ...]


class Family:
    """The files that one compilation reads, each once, by real path."""

    def __init__(self, load: Load) -> None:
        self._load = load
        self._known: dict[str, Child] = {}

    @property
    def files(self) -> tuple[SourceFile, ...]:
        return tuple(child.file for child in self._known.values())

    def check(self, path: str, document: Document, report: Report, above: tuple[str, ...] = ()) -> None:
        """Check the files that a document nests; `above` are the shown paths of those that nest it."""
        chain = (*above, path)
        for step in document.steps:
            if step.workflow is not None and step.verbs == ("workflow",):
                self._step(path, step, step.workflow, report, chain)

    def _step(self, path: str, step: Step, ref: Scalar, report: Report, chain: tuple[str, ...]) -> None:
        label = f"{step.label}: workflow {ref.text}"
        target = os.path.join(os.path.dirname(path), ref.text)
        if ref.text.startswith(REMOTE):
            return
        if not ref.text.strip() or OPEN in ref.text:
            message = f"{step.label}: workflow must be the path of a file, without {{{{ }}}}"
            report.error("invalid-child", message, ref.place)
            return
        if os.path.realpath(target) in map(os.path.realpath, chain):
            shown = " → ".join((*chain, ref.text))
            report.error("child-cycle", f"{label}: nested workflows form a cycle: {shown}", ref.place)
            return
        if len(chain) > grammar.NESTING:
            report.error("child-depth", f"{label}: nested more than {grammar.NESTING} levels deep", ref.place)
            return
        try:
            child = self._child(target, chain)
        except SourceError as error:
            report.error("child-missing", f"{label}: {error.message}", ref.place)
            return
        for found in child.errors:
            where = f"{target}:{found.place.line}:{found.place.column}"
            report.error("invalid-child", f"{label}: {where}: {found.message}", ref.place, found.hint)
        if child.document is not None:
            _arguments(step, child.document, label, report)

    def _child(self, target: str, chain: tuple[str, ...]) -> Child:
        real = os.path.realpath(target)
        if real not in self._known:
            source = self._load(target)
            report = Report()
            document = parse(source.text, report)
            file = SourceFile(target, source.digest, source.size)
            self._known[real] = Child(file, document, ())
            if document is not None:
                check(document, Places(tuple(source.text.split("\n"))), report)
                self.check(target, document, report, chain)
            self._known[real] = Child(file, document, errors_of(report.sorted()))
        return self._known[real]


def _arguments(step: Step, child: Document, label: str, report: Report) -> None:
    """The keys of `with:` are the child's inputs: none unknown, no required one missing."""
    declared = {known.name for known in child.inputs}
    given = {entry.name for entry in step.arguments}
    for entry in step.arguments:
        if entry.name not in declared:
            message = f'{label}: unknown input "{entry.name}" (declared: {", ".join(sorted(declared)) or "none"})'
            report.error("unknown-input", message, entry.key.place)
    for known in child.inputs:
        if known.required and known.default is None and known.name not in given:
            message = f"{label}: inputs.{known.name} is required (with: {{ {known.name}: ... }})"
            report.error("missing-input", message, step.place_of("with"))
