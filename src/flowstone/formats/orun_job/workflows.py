"""The workflow files that a job names → their plans, and diagnostics of the steps that name them.

A file is read and compiled once, however many steps run it. Paths start from the folder of the job; a
remote workflow is named by its reference.
"""

from __future__ import annotations

import os.path
from collections.abc import Callable

from flowstone.diagnostics import Report, errors_of
from flowstone.errors import DigestMismatch, SourceError
from flowstone.formats.orun.compile import compile_orun
from flowstone.formats.orun_job.document import Document, Step
from flowstone.formats.registry import Compiled
from flowstone.plan.model import Plan, SourceFile
from flowstone.source.file import SourceText
from flowstone.source.remote import is_remote, parse_remote
from flowstone.source.tree import Scalar

Load = Callable[[str], SourceText]


class Workflows:
    """The workflows of one job. `folder` is where the job lies."""

    def __init__(self, folder: str, load: Load) -> None:
        self._folder = folder
        self._load = load
        self._known: dict[str, Compiled] = {}
        self._origins: dict[str, tuple[tuple[str, str], ...]] = {}

    def check(self, document: Document, report: Report) -> None:
        """Compile every file that a step names, and report all that is wrong with it at the step."""
        for step in document.steps:
            if step.workflow is not None:
                self._check(step, step.workflow, report)

    def plan(self, step: Step) -> Plan | None:
        """The plan of a step's workflow; None where there is none, or it is wrong."""
        if step.workflow is None:
            return None
        try:
            found = self._known.get(_spelt(step.workflow.text))
        except SourceError:  # told at the step
            return None
        return None if found is None else found.plan

    def files_of(self, document: Document) -> tuple[SourceFile, ...]:
        """All files that a job rests on, those that its workflows nest among them, each once."""
        return tuple({file.path: file for step in document.steps for file in self.files_of_step(step)}.values())

    def files_of_step(self, step: Step) -> tuple[SourceFile, ...]:
        """The workflow file of a step, and those that it nests."""
        plan = self.plan(step)
        return () if plan is None else plan.read_set

    def provenance(self, step: Step) -> tuple[tuple[str, str], ...]:
        """The variables that tell the commands of a fetched workflow where it came from."""
        return () if step.workflow is None else self._origins.get(_spelt(step.workflow.text), ())

    def _check(self, step: Step, ref: Scalar, report: Report) -> None:
        label = f"{step.label}: workflow {ref.text}"
        if not is_remote(ref.text) and (not ref.text.strip() or "{{" in ref.text or os.path.isabs(ref.text)):
            message = f"{step.label}: workflow must be the path of a file, from the job's folder, without {{{{ }}}}"
            report.error("invalid-child", message, ref.place)
            return
        try:
            found = self._compiled(_spelt(ref.text))
        except (SourceError, DigestMismatch) as error:
            message = error.message.removeprefix(os.path.join(self._folder, ""))
            report.error("child-missing", f"{label}: {message}", ref.place, error.hint)
            return
        for wrong in errors_of(found.diagnostics):
            where = f"{_spelt(ref.text)}:{wrong.place.line}:{wrong.place.column}"
            report.error("invalid-child", f"{label}: {where}: {wrong.message}", ref.place, wrong.hint)

    def _compiled(self, path: str) -> Compiled:
        if path not in self._known:
            source = self._load(path if is_remote(path) else os.path.join(self._folder, path))
            self._origins[path] = () if source.origin is None else source.origin.provenance
            self._known[path] = compile_orun(path, source, self._load)
        return self._known[path]


def _spelt(ref: str) -> str:
    """One spelling of a path, with `/` between its parts; of a reference its own, which holds no password."""
    if not is_remote(ref):
        return os.path.normpath(ref).replace(os.sep, "/")
    remote = parse_remote(ref)
    if remote.user is not None:
        raise SourceError("a job holds no user and password; take them out of the address")
    return remote.text
