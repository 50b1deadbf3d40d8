"""Source → plan or diagnostics: a whole job in one call."""

from __future__ import annotations

import os.path
from collections.abc import Callable

from flowstone.diagnostics import Report
from flowstone.formats.orun.places import Places
from flowstone.formats.orun_job.check import check
from flowstone.formats.orun_job.lower import lower
from flowstone.formats.orun_job.parse import parse
from flowstone.formats.orun_job.workflows import Workflows
from flowstone.formats.registry import ORUN_JOB, Compiled
from flowstone.plan.model import SourceFile
from flowstone.source.file import SourceText


def compile_job(path: str, source: SourceText, load: Callable[[str], SourceText]) -> Compiled:
    """Compile a job and the workflows that it runs; `load` reads such a file or raises SourceError.

    Paths in the plan start from the folder of the job, so that the plan is the same wherever that lies.
    """
    report = Report()
    digest = f"sha256:{source.digest}"
    document = parse(source.text, report)
    if document is None:
        return Compiled(None, report.sorted(), ORUN_JOB, digest)
    workflows = Workflows(os.path.dirname(source.path), load)
    workflows.check(document, report)
    check(document, workflows.plan, Places(tuple(source.text.split("\n"))), report)
    if report.failed:
        return Compiled(None, report.sorted(), ORUN_JOB, digest)
    job = SourceFile(os.path.basename(source.path), source.digest, source.size)
    plan = lower(document, job, workflows)
    return Compiled(plan, report.sorted(), ORUN_JOB, digest)
