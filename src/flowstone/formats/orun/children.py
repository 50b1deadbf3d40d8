"""Nested workflow files → diagnostics of the file that nests them: existence, cycles, validity.

A cycle is found by real paths, through symlinks and `./` spellings; what a file nests itself starts
from the folder in which it was named.
"""

from __future__ import annotations

import os.path
from collections.abc import Callable, Iterator

import msgspec

from flowstone.diagnostics import Diagnostic, Report, errors_of
from flowstone.errors import DigestMismatch, SourceError
from flowstone.expr.templates import OPEN
from flowstone.formats.orun import grammar
from flowstone.formats.orun.check import check
from flowstone.formats.orun.document import Document, Step
from flowstone.formats.orun.grants import connections_of_output, connections_of_step
from flowstone.formats.orun.parse import parse
from flowstone.formats.orun.places import Places
from flowstone.plan.model import SourceFile
from flowstone.source.file import Origin, SourceText
from flowstone.source.remote import beside, is_remote, parse_remote
from flowstone.source.tree import Scalar

Load = Callable[[str], SourceText]


class At(msgspec.Struct, frozen=True):
    """A file: `shown` as the user would name it, `path` where it is read, `real` without symlinks.

    Of a remote file all of them are references. `origin` is that of a file which was fetched.
    """

    shown: str
    path: str
    real: str
    origin: Origin | None = None

    def beside(self, ref: str) -> At:
        """The file that a path names which starts from the folder of this one, or a reference; SourceError."""
        if is_remote(ref):
            remote = parse_remote(ref)
            if remote.user is not None:
                raise SourceError("a workflow holds no user and password; take them out of the address")
            return At(remote.text, remote.text, remote.text)
        if self.origin is None:
            return at(os.path.join(os.path.dirname(self.shown), ref), os.path.join(os.path.dirname(self.path), ref))
        if not self.origin.base:
            raise SourceError(f"the commit behind {self.shown} is not known; so no other file of it can be fetched")
        target = beside(self.origin.base, ref)
        return At(target, target, target)

    def read(self, origin: Origin | None) -> At:
        """The same once its source is there, which tells where it came from."""
        return self if origin is None else At(self.shown, self.path, origin.base or self.real, origin)

    @property
    def key(self) -> tuple[str, str]:
        """What the file and all that it nests depend on."""
        return self.real, "" if is_remote(self.path) else os.path.realpath(os.path.dirname(self.path))


def at(shown: str, path: str) -> At:
    return At(shown, path, os.path.realpath(path))


class Child(msgspec.Struct, frozen=True):
    """A nested file: `document` is None where it is no workflow; `errors` are its own, all levels.

    `at` is where it was read. `uses` are the connections that it needs, and `steps` counts its
    steps, both of all levels.
    """

    at: At
    file: SourceFile
    document: Document | None
    errors: tuple[Diagnostic, ...]
    uses: tuple[str, ...] = ()
    steps: int = 0


class Family:
    """The files that one compilation reads, each once."""

    def __init__(self, load: Load) -> None:
        self._load = load
        self._known: dict[tuple[str, str], Child] = {}
        self._files = self._bytes = 0

    @property
    def files(self) -> tuple[SourceFile, ...]:
        return tuple({key[0]: child.file for key, child in self._known.items()}.values())

    def of(self, file: At, ref: str) -> Child:
        """The checked file that a sound one nests under a path or a reference."""
        return self._known[file.beside(ref).key]

    def check(self, file: At, document: Document, report: Report, above: tuple[At, ...] = ()) -> None:
        """Check the files that a document nests; `above` are those that nest it, the top one first."""
        chain = (*above, file)
        for step in document.steps:
            if step.workflow is not None and step.verbs == ("workflow",):
                self._step(step, step.workflow, report, chain, document)
        if not report.failed and self._count(file, document) > grammar.NESTED_STEPS:
            message = f"workflow {document.name}: more than {grammar.NESTED_STEPS:,} steps with those that it nests"
            report.error("child-size", message, document.steps_place)

    def _step(self, step: Step, ref: Scalar, report: Report, chain: tuple[At, ...], parent: Document) -> None:
        label = f"{step.label}: workflow {ref.text}"
        if not ref.text.strip() or OPEN in ref.text:
            message = f"{step.label}: workflow must be the path of a file, without {{{{ }}}}"
            report.error("invalid-child", message, ref.place)
            return
        try:
            target = chain[-1].beside(ref.text)
        except SourceError as error:
            report.error("child-missing", f"{label}: {error.message}", ref.place)
            return
        if target.real in {file.real for file in chain}:
            report.error("child-cycle", f"{label}: {_cycle(chain, ref.text)}", ref.place)
        elif len(chain) > grammar.NESTING:
            report.error("child-depth", f"{label}: nested more than {grammar.NESTING} levels deep", ref.place)
        else:
            self._nested(step, target, report, chain, parent)

    def _nested(self, step: Step, target: At, report: Report, chain: tuple[At, ...], parent: Document) -> None:
        ref = step.workflow
        assert ref is not None
        label = f"{step.label}: workflow {ref.text}"
        try:
            child = self._child(target, chain)
        except (SourceError, DigestMismatch) as error:
            message = error.message.replace(target.path, target.shown)
            report.error("child-missing", f"{label}: {message}", ref.place, error.hint)
            return
        if child.at.origin is not None and child.at.real in {file.real for file in chain}:
            report.error("child-cycle", f"{label}: {_cycle(chain, ref.text)}", ref.place)
            return
        for found in child.errors:
            where = f"{target.shown}:{found.place.line}:{found.place.column}"
            report.error("invalid-child", f"{label}: {where}: {found.message}", ref.place, found.hint)
        if child.document is not None:
            _arguments(step, child.document, label, report)
            _connections(ref, child, parent, label, report)

    def _child(self, target: At, chain: tuple[At, ...]) -> Child:
        if target.key not in self._known:
            self._known[target.key] = self._read(target, chain)
        return self._known[target.key]

    def _read(self, target: At, chain: tuple[At, ...]) -> Child:
        source = self._load(target.path)
        file = target.read(source.origin)
        self._admit(file, source, chain[-1])
        report = Report()
        document = parse(source.text, report)
        child = Child(file, SourceFile(target.shown, source.digest, source.size), document, ())
        if document is not None and file.real not in {above.real for above in chain}:
            check(document, Places(tuple(source.text.split("\n"))), report)
            self.check(file, document, report, chain)
            if not report.failed:
                uses, steps = self._uses(file, document), self._count(file, document)
                child = msgspec.structs.replace(child, uses=uses, steps=steps)
        return msgspec.structs.replace(child, errors=errors_of(report.sorted()))

    def _admit(self, file: At, source: SourceText, parent: At) -> None:
        """SourceError for a fetched file that is too much, or that is missing in the lock of its parent."""
        if file.origin is None:
            return
        self._files += 1
        self._bytes += source.size
        if self._files > grammar.FETCHED_FILES or self._bytes > grammar.FETCHED_BYTES:
            raise SourceError(
                f"a workflow may nest at most {grammar.FETCHED_FILES} fetched files, "
                f"and {grammar.FETCHED_BYTES:,} bytes of them"
            )
        if parent.origin is not None and parent.origin.pinned and not file.origin.pinned:
            raise SourceError(
                f"{parent.shown} is pinned in flowstone.lock, and {file.shown} is not",
                hint="Vendor it again: flowstone vendor",
            )

    def _uses(self, file: At, document: Document) -> tuple[str, ...]:
        own = [name for step in document.steps for name in connections_of_step(step, document)]
        own += [name for output in document.outputs for name in connections_of_output(output, document)]
        return tuple(dict.fromkeys([*own, *(name for child in self._below(file, document) for name in child.uses)]))

    def _count(self, file: At, document: Document) -> int:
        return len(document.steps) + sum(child.steps for child in self._below(file, document))

    def _below(self, file: At, document: Document) -> Iterator[Child]:
        """The files that a sound one nests, each as often as it is nested."""
        for step in document.steps:
            if step.workflow is not None:
                yield self.of(file, step.workflow.text)


def _cycle(chain: tuple[At, ...], ref: str) -> str:
    return f"nested workflows form a cycle: {' → '.join((*(file.shown for file in chain), ref))}"


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


def _connections(ref: Scalar, child: Child, parent: Document, label: str, report: Report) -> None:
    """What the child uses can only be granted to the workflow that nests it."""
    declared = {connection.name for connection in parent.connections}
    for name in child.uses:
        if name not in declared:
            message = f'{label}: it uses connection "{name}", which is not declared under connections here'
            report.error("undeclared-connection", message, ref.place)
