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


class At(msgspec.Struct, frozen=True):
    """A file: `shown` as the user would name it, `path` where it is read, `real` without symlinks."""

    shown: str
    path: str
    real: str

    def beside(self, ref: str) -> At:
        """The file that a path names which starts from the folder of this one."""
        return at(os.path.join(os.path.dirname(self.shown), ref), os.path.join(os.path.dirname(self.path), ref))


def at(shown: str, path: str) -> At:
    return At(shown, path, os.path.realpath(path))


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

    def check(self, file: At, document: Document, report: Report, above: tuple[At, ...] = ()) -> None:
        """Check the files that a document nests; `above` are those that nest it, the top one first."""
        chain = (*above, file)
        for step in document.steps:
            if step.workflow is not None and step.verbs == ("workflow",):
                self._step(step, step.workflow, report, chain)

    def _step(self, step: Step, ref: Scalar, report: Report, chain: tuple[At, ...]) -> None:
        label = f"{step.label}: workflow {ref.text}"
        if ref.text.startswith(REMOTE):
            return
        if not ref.text.strip() or OPEN in ref.text:
            message = f"{step.label}: workflow must be the path of a file, without {{{{ }}}}"
            report.error("invalid-child", message, ref.place)
            return
        target = chain[-1].beside(ref.text)
        if target.real in {file.real for file in chain}:
            shown = " → ".join((*(file.shown for file in chain), ref.text))
            report.error("child-cycle", f"{label}: nested workflows form a cycle: {shown}", ref.place)
        elif len(chain) > grammar.NESTING:
            report.error("child-depth", f"{label}: nested more than {grammar.NESTING} levels deep", ref.place)
        else:
            self._nested(step, ref, target, report, chain)

    def _nested(self, step: Step, ref: Scalar, target: At, report: Report, chain: tuple[At, ...]) -> None:
        label = f"{step.label}: workflow {ref.text}"
        try:
            child = self._child(target, chain)
        except SourceError as error:
            message = error.message.replace(target.path, target.shown)
            report.error("child-missing", f"{label}: {message}", ref.place)
            return
        for found in child.errors:
            where = f"{target.shown}:{found.place.line}:{found.place.column}"
            report.error("invalid-child", f"{label}: {where}: {found.message}", ref.place, found.hint)
        if child.document is not None:
            _arguments(step, child.document, label, report)

    def _child(self, target: At, chain: tuple[At, ...]) -> Child:
        if target.real not in self._known:
            source = self._load(target.path)
            report = Report()
            document = parse(source.text, report)
            file = SourceFile(target.shown, source.digest, source.size)
            if document is not None:
                check(document, Places(tuple(source.text.split("\n"))), report)
                self.check(target, document, report, chain)
            self._known[target.real] = Child(file, document, errors_of(report.sorted()))
        return self._known[target.real]


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
