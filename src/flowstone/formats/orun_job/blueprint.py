"""A blueprint's hooks → a job for each phase, or diagnostics: hooks are steps that run a workflow.

Nothing else of a blueprint is ours; where the hooks are pinned is the business of `lock`.
"""

from __future__ import annotations

import os.path
import re
from collections.abc import Callable
from typing import NamedTuple

import msgspec

from flowstone.diagnostics import Diagnostic, Place, Report
from flowstone.formats.orun.fields import entries_of, items_of, named, optional, retry, scalar_text
from flowstone.formats.orun.grammar import NAME, YAML
from flowstone.formats.orun.header import is_kind, name_of
from flowstone.formats.orun.places import Places
from flowstone.formats.orun_job import grammar
from flowstone.formats.orun_job.check import check
from flowstone.formats.orun_job.document import Document, Step
from flowstone.formats.orun_job.lower import lower
from flowstone.formats.orun_job.parse import grant_of
from flowstone.formats.orun_job.workflows import Workflows
from flowstone.plan.model import Plan, SourceFile
from flowstone.source.cursor import Cursor
from flowstone.source.file import SourceText
from flowstone.source.yaml import read_yaml


class Hook(msgspec.Struct, frozen=True):
    """A hook: the step that it is, and when it runs. `files` are its workflow and what that nests."""

    phase: str
    phase_place: Place
    step: Step
    files: tuple[SourceFile, ...] = ()

    @property
    def workflow(self) -> str:
        return self.step.workflow.text if self.step.workflow is not None else ""


class Blueprint(NamedTuple):
    """A sound blueprint: its hooks in the order of the file, and what each phase runs."""

    name: str
    hooks: tuple[Hook, ...]
    phases: dict[str, Plan]


Load = Callable[[str], SourceText]


def compile_blueprint(source: SourceText, load: Load) -> tuple[Blueprint | None, tuple[Diagnostic, ...]]:
    """The hooks of a blueprint and all that is wrong with them; None if anything is.

    Paths start from the folder of the blueprint; `load` reads a workflow file or raises SourceError.
    """
    report = Report()
    tree = read_yaml(source.text, YAML, report)
    if tree is None or not is_kind(tree, grammar.BLUEPRINT_KIND, "blueprint", report):
        return None, report.sorted()
    keys = Cursor(tree, "", report, tree.place).mapping(grammar.BLUEPRINT_KEYS)
    name, place = name_of(keys.get("metadata"), tree.place)
    hooks = tuple(_hook(item, index) for index, item in enumerate(items_of(keys.get("hooks"))))
    if not hooks:
        report.error("no-hooks", f"blueprint {name} declares no hooks", tree.place)
    _check(hooks, report)
    workflows = Workflows(os.path.dirname(source.path), load)
    documents = _documents(name, place, hooks)
    for document in documents.values():
        workflows.check(document, report)
        check(document, workflows.plan, Places(tuple(source.text.split("\n"))), report)
    if report.failed:
        return None, report.sorted()
    file = SourceFile(os.path.basename(source.path), source.digest, source.size)
    phases = {phase: lower(document, file, workflows) for phase, document in documents.items()}
    found = tuple(msgspec.structs.replace(hook, files=workflows.files_of_step(hook.step)) for hook in hooks)
    return Blueprint(name, found, phases), report.sorted()


def _hook(cursor: Cursor, index: int) -> Hook:
    keys = cursor.mapping(grammar.HOOK_KEYS)
    name, phase = optional(keys, "id", scalar_text), optional(keys, "phase", scalar_text)
    step = Step(
        name=name.text if name else "",
        place=name.place if name else cursor.place,
        label=f"hook {name.text}" if name else f"hooks[{index}]",
        workflow=optional(keys, "workflow", scalar_text),
        arguments=entries_of(keys.get("with")),
        grants=named(keys, "connections", grant_of),
        resume=optional(keys, "resume", Cursor.boolean) or False,
        timeout=optional(keys, "timeout", scalar_text),
        retry=optional(keys, "retry", retry),
        on_failure=optional(keys, "onFailure", scalar_text),
        given=tuple((key, value.place) for key, value in keys.items() if not value.is_null),
    )
    return Hook(phase.text if phase else "", phase.place if phase else cursor.place, step)


def _check(hooks: tuple[Hook, ...], report: Report) -> None:
    seen: set[str] = set()
    for hook in hooks:
        step = hook.step
        if step.workflow is None:
            report.error("missing-workflow", f"{step.label}: workflow is required: the path of a file", step.place)
        if not re.fullmatch(grammar.PHASE, hook.phase):
            message = f'{step.label}: phase "{hook.phase}" must match {grammar.PHASE}'
            report.error("invalid-name", message, hook.phase_place)
        if step.name in seen:
            report.error("duplicate-hook", f'duplicate hook id "{step.name}"', step.place)
        if re.fullmatch(NAME, step.name):
            seen.add(step.name)


def _documents(name: str, place: Place, hooks: tuple[Hook, ...]) -> dict[str, Document]:
    """A job for each phase, with its hooks in the order of the file."""
    phases: dict[str, list[Step]] = {}
    for hook in hooks:
        if hook.step.workflow is not None:
            phases.setdefault(hook.phase, []).append(hook.step)
    return {phase: Document(_job_name(name, phase), place, tuple(steps), place) for phase, steps in phases.items()}


def _job_name(name: str, phase: str) -> str:
    """`service` and `postCreate` give `service-post-create`; a name that is wrong stays so."""
    return name + "-" + "".join(f"-{c.lower()}" if c.isupper() else c for c in phase) if name else name
