"""The workflow files that a job names → their plans, and diagnostics of the steps that name them.

A file is read and compiled once, however many steps run it. Paths start from the folder of the job.
"""

from __future__ import annotations

import os.path
from collections.abc import Callable

from flowstone.diagnostics import Report, errors_of
from flowstone.errors import SourceError
from flowstone.formats.orun.compile import compile_orun
from flowstone.formats.orun_job.document import Document, Step
from flowstone.formats.registry import Compiled
from flowstone.plan.model import Plan, SourceFile
from flowstone.source.file import SourceText
from flowstone.source.remote import is_remote
from flowstone.source.tree import Scalar

Load = Callable[[str], SourceText]


class Workflows:
    """The workflows of one job. `folder` is where the job lies."""

    def __init__(self, folder: str, load: Load) -> None:
        self._folder = folder
        self._load = load
        self._known: dict[str, Compiled | SourceError] = {}

    def check(self, document: Document, report: Report) -> None:
        """Compile every file that a step names, and report all that is wrong with it at the step."""
        for step in document.steps:
            if step.workflow is not None:
                self._check(step, step.workflow, report)

    def plan(self, step: Step) -> Plan | None:
        """The plan of a step's workflow; None where there is none, or it is wrong."""
        found = None if step.workflow is None else self._known.get(_normal(step.workflow.text))
        return found.plan if isinstance(found, Compiled) else None

    def files_of(self, document: Document) -> tuple[SourceFile, ...]:
        """All files that a job rests on, those that its workflows nest among them, each once."""
        return tuple({file.path: file for step in document.steps for file in self.files_of_step(step)}.values())

    def files_of_step(self, step: Step) -> tuple[SourceFile, ...]:
        """The workflow file of a step, and those that it nests."""
        plan = self.plan(step)
        return () if plan is None else plan.read_set

    def _check(self, step: Step, ref: Scalar, report: Report) -> None:
        label = f"{step.label}: workflow {ref.text}"
        if is_remote(ref.text):
            hint = "fetch the file, put it beside the job and name it by its path"
            report.error("invalid-child", f"{label}: a job runs files only", ref.place, hint)
            return
        if not ref.text.strip() or "{{" in ref.text or os.path.isabs(ref.text):
            message = (
                f"{step.label}: workflow must be the path of a file, from the folder of the job, without {{{{ }}}}"
            )
            report.error("invalid-child", message, ref.place)
            return
        found = self._compiled(_normal(ref.text))
        if isinstance(found, SourceError):
            message = found.message.replace(os.path.join(self._folder, _normal(ref.text)), ref.text)
            report.error("child-missing", f"{label}: {message}", ref.place)
            return
        for wrong in errors_of(found.diagnostics):
            where = f"{_normal(ref.text)}:{wrong.place.line}:{wrong.place.column}"
            report.error("invalid-child", f"{label}: {where}: {wrong.message}", ref.place, wrong.hint)

    def _compiled(self, path: str) -> Compiled | SourceError:
        if path not in self._known:
            try:
                source = self._load(os.path.join(self._folder, path))
                self._known[path] = compile_orun(path, source, self._load)
            except SourceError as error:
                self._known[path] = error
        return self._known[path]


def _normal(ref: str) -> str:
    """One spelling of a path, with `/` between its parts."""
    return os.path.normpath(ref).replace(os.sep, "/")
