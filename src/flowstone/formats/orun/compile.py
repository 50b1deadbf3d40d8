"""Source → plan or diagnostics: the whole of the orun language in one call."""

from __future__ import annotations

from collections.abc import Callable

from flowstone.diagnostics import Report
from flowstone.formats.orun.check import check
from flowstone.formats.orun.children import At, Family, at
from flowstone.formats.orun.document import Document
from flowstone.formats.orun.lower import Nested, lower
from flowstone.formats.orun.parse import parse
from flowstone.formats.orun.places import Places
from flowstone.formats.registry import ORUN, Compiled
from flowstone.plan.model import Plan, SourceFile
from flowstone.source.file import SourceText
from flowstone.source.remote import is_remote


def compile_orun(path: str, source: SourceText, load: Callable[[str], SourceText]) -> Compiled:
    """Compile an orun workflow and check the files that it nests.

    `path` is what diagnostics call the file; nested paths start from the folder of `source.path`,
    and `load` reads such a file or raises SourceError. All that is wrong is reported, sorted by
    place; the plan is None if anything is.
    """
    report = Report()
    digest = f"sha256:{source.digest}"
    document = parse(source.text, report)
    if document is None:
        return Compiled(None, report.sorted(), ORUN, digest)
    check(document, Places(tuple(source.text.split("\n"))), report)
    family = Family(load)
    file = at(path, source.path) if source.origin is None else At(path, path, path).read(source.origin)
    family.check(file, document, report)
    if report.failed:
        return Compiled(None, report.sorted(), ORUN, digest)
    plan = _Lowering(family).plan(file, document, SourceFile(path, source.digest, source.size), family.files)
    return Compiled(plan, report.sorted(), ORUN, digest)


class _Lowering:
    """Lowers a file and, once each, the files that it nests: their plans are in its own."""

    def __init__(self, family: Family) -> None:
        self._family = family
        self._plans: dict[tuple[str, str], Plan] = {}

    def plan(self, file: At, document: Document, source: SourceFile, read: tuple[SourceFile, ...] = ()) -> Plan:
        return lower(document, source, read, lambda ref: self._nested(file, ref))

    def _nested(self, file: At, ref: str) -> Nested:
        child = self._family.of(file, ref)
        assert child.document is not None
        key = child.at.key
        if key not in self._plans:
            self._plans[key] = self.plan(child.at, child.document, child.file)
        own = is_remote(ref) and child.at.origin is not None
        return Nested(self._plans[key], child.at.origin.provenance if own and child.at.origin else ())
