"""The rules of the akm language on a whole document: what the source IR decoder applies again.

Each function yields what is wrong, with the path of the part inside the document.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from flowstone.diagnostics import Report
from flowstone.expr.cron import CronProblem, check_cron
from flowstone.expr.refs import ReferenceProblem, parse_reference
from flowstone.expr.schema_check import check_schema
from flowstone.formats.akm_common import document as ir
from flowstone.formats.akm_common import rules
from flowstone.formats.akm_common.links import Lead, Links, Reading
from flowstone.formats.akm_common.semantics_step import check_step
from flowstone.plan import bounds
from flowstone.values import Json, clip

_NAME = re.compile(bounds.PARAM_NAME)
_JOB_ID = re.compile(bounds.GITHUB_ID)
_OWNER = re.compile(r"[a-z0-9]+(?:[.-][a-z0-9]+)+/[a-z0-9]+(?:[.-][a-z0-9]+)*")


def check_document(document: ir.Document) -> Iterator[str]:
    """Every rule that a document breaks; none for one that a parser has made."""
    if not document.name.strip():
        yield "name: it must not be empty"
    yield from _check_triggers(document.triggers)
    yield from _check_params(document.params or {})
    yield from _check_outputs(document.outputs or {})
    yield from _check_settings(document)
    yield from _check_extensions("extensions", document.extensions)
    if len(document.jobs) != 1:
        yield "jobs: there must be exactly one job"
        return
    yield from _check_job(document.jobs[0])
    yield from _check_links(document)


def _check_triggers(triggers: tuple[ir.Trigger, ...]) -> Iterator[str]:
    schedules = [trigger for trigger in triggers if isinstance(trigger, ir.ScheduleTrigger)]
    if not 1 <= len(triggers) <= bounds.SCHEDULES + 1 or len(schedules) > bounds.SCHEDULES:
        yield f"triggers: there must be 1 to {bounds.SCHEDULES} of them"
    if len(triggers) - len(schedules) > 1:
        yield "triggers: there may be one workflow_dispatch"
    for index, trigger in enumerate(triggers):
        if isinstance(trigger, ir.ScheduleTrigger):
            if trigger.ordinal != index:
                yield f"triggers[{index}]: schedules come first, with ordinals from 0"
            yield from _check_cron(trigger.cron, f"triggers[{index}].cron")


def _check_cron(text: str, path: str) -> Iterator[str]:
    try:
        if check_cron(text) != text:
            yield f"{path}: its fields must be separated by single blanks"
    except CronProblem as problem:
        yield f"{path}: {problem.message}"


def _check_params(params: dict[str, dict[str, Json]]) -> Iterator[str]:
    if len(params) > bounds.PARAMS:
        yield f"params: there are over {bounds.PARAMS}"
    for name, schema in params.items():
        yield from _check_name("params", name)
        yield from (problem.message for problem in check_schema(schema, f'Param "{name}" schema'))


def _check_outputs(outputs: dict[str, ir.Export]) -> Iterator[str]:
    if len(outputs) > bounds.OUTPUTS:
        yield f"outputs: there are over {bounds.OUTPUTS}"
    for name, export in outputs.items():
        yield from _check_name("outputs", name)
        if export.schema is not None:
            yield from (problem.message for problem in check_schema(export.schema, f'Output "{name}" schema'))


def _check_name(where: str, name: str) -> Iterator[str]:
    if not _NAME.fullmatch(name):
        yield f'{where}: "{clip(name, 80)}" is no name'


def _check_settings(document: ir.Document) -> Iterator[str]:
    defaults, budget = document.defaults, document.budget
    if defaults is not None:
        if defaults.engine is not None and (problem := rules.engine_problem(defaults.engine)):
            yield f"defaults.engine {problem}"
        if defaults.llm is not None:
            yield from (f"defaults.llm: {message}" for message in rules.llm_faults(defaults.llm))
        yield from _check_bound(defaults.timeout_ms, 1, bounds.TIMEOUT_MS, "defaults.timeoutMs")
    if budget is not None:
        yield from _check_bound(budget.max_units, 1, bounds.UNITS, "budget.maxUnits")
        yield from _check_bound(budget.max_tokens, 1, None, "budget.maxTokens")


def _check_bound(value: object, low: int, high: int | None, path: str) -> Iterator[str]:
    if isinstance(value, int) and (value < low or (high is not None and value > high)):
        yield f"{path}: {value} is out of bounds"


def _check_extensions(path: str, extensions: dict[str, Json] | None) -> Iterator[str]:
    for owner in extensions or {}:
        if not _OWNER.fullmatch(owner):
            yield f'{path}: "{clip(owner, 80)}" is no owner (host/name)'


def _check_job(job: ir.Job) -> Iterator[str]:
    if not _JOB_ID.fullmatch(job.id):
        yield f'jobs[0].id: "{clip(job.id, 140)}" is no job id'
    if job.needs:
        yield "jobs[0].needs: it must be empty"
    if not 1 <= len(job.steps) <= bounds.STEPS:
        yield f"jobs[0].steps: there must be 1 to {bounds.STEPS} of them"
    yield from _check_extensions("jobs[0].extensions", job.extensions)
    seen: set[str] = set()
    for index, step in enumerate(job.steps):
        path = f"jobs[0].steps[{index}]"
        if step.id in seen:
            yield f'{path}.id: "{step.id}" is used twice'
        seen.add(step.id)
        yield from check_step(step, path)
        yield from _check_extensions(f"{path}.extensions", step.extensions)


def _check_links(document: ir.Document) -> Iterator[str]:
    links = Links()
    for index, step in enumerate(document.steps):
        yield from _note_links(links, index, step)
    for name, export in (document.outputs or {}).items():
        yield from _note(links, f"outputs.{name}.from", export.from_, document.source, None, ("steps",))
    report = Report()
    links.check([step.id for step in document.steps], frozenset(document.params or ()), report)
    yield from (d.message for d in report.sorted() if report.failed and d.severity == "error")


def _note_links(links: Links, index: int, step: ir.Step) -> Iterator[str]:
    label, source = f'step "{step.id}"', step.source
    for text in step.inputs:
        yield from _note(links, f"{label} inputs", text, source, index, ("steps",))
    if step.map is not None:
        yield from _note(links, f"{label} map.over", step.map.over, source, index, ("steps", "params"))
    for name, value in (step.with_ or {}).items():
        if isinstance(value, dict) and set(value) == {"from"}:
            yield from _note(links, f"{label} with.{name}", str(value["from"]), source, index, ("steps",))
    if step.route is not None:
        yield from _note(links, f"{label} route.input", step.route.input, source, index, ("steps", "params"))
        targets = [branch.step_id for branch in step.route.branches]
        if step.route.default_step_id is not None:
            targets.append(step.route.default_step_id)
        links.leads += [Lead(f"{label} route", target, source.start, index) for target in targets]


def _note(
    links: Links, label: str, text: str, source: ir.Span, step: int | None, roots: tuple[str, ...]
) -> Iterator[str]:
    try:
        reference = parse_reference(text)
    except ReferenceProblem as problem:
        yield f"{label}: {problem.message}"
        return
    if reference.root not in roots:
        yield f"{label}: it must name the output of a step"
        return
    links.readings.append(Reading(label, reference, source.start, step))
