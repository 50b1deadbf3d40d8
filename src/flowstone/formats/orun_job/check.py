"""Document → diagnostics: all that a job promises at plan time, but what its workflows say."""

from __future__ import annotations

import re
from collections.abc import Callable

from flowstone.diagnostics import Place, Report
from flowstone.expr.cel import STEP_OUTPUTS, CelRefused, CompiledCel, compile_cel
from flowstone.formats.orun import grammar as workflow_grammar
from flowstone.formats.orun.check import check_duration, check_outputs, check_retry
from flowstone.formats.orun.document import Named
from flowstone.formats.orun.places import Places
from flowstone.formats.orun_job import grammar
from flowstone.formats.orun_job.check_workflows import check_workflow
from flowstone.formats.orun_job.document import Approval, Document, Step
from flowstone.formats.orun_job.references import Misread, Reference, split, texts_of
from flowstone.plan.model import Plan
from flowstone.source.cursor import suggest
from flowstone.source.tree import Scalar

PlanOf = Callable[[Step], Plan | None]
Known = dict[str, frozenset[str] | None]
"""The earlier steps by name, with what they hand on; None where that cannot be told."""


def check(document: Document, plan_of: PlanOf, places: Places, report: Report) -> None:
    """Report all that is wrong with a job; `plan_of` gives the plan of a step's workflow if it is sound."""
    _header(document, report)
    known: Known = {}
    for index, step in enumerate(document.steps):
        _name(step, index, known, report)
        _keys(step, report)
        _values(step, report)
        _outputs(step, known, places, report)
        _references(step, known, places, report)
        plan = plan_of(step)
        if plan is not None:
            check_workflow(step, plan, report)
        known[step.name] = _handed_on(step, plan)


def _header(document: Document, report: Report) -> None:
    if not re.fullmatch(workflow_grammar.NAME, document.name):
        message = f'metadata.name "{document.name}" must match {workflow_grammar.NAME}'
        report.error("invalid-name", message, document.place)
    if not document.steps:
        report.error("no-steps", f"job {document.name} declares no steps", document.steps_place)
    if len(document.steps) > grammar.STEPS:
        message = f"job {document.name} has {len(document.steps)} steps; at most {grammar.STEPS} are allowed"
        report.error("out-of-range", message, document.steps_place)


def _name(step: Step, index: int, known: Known, report: Report) -> None:
    if not re.fullmatch(workflow_grammar.NAME, step.name):
        message = f'steps[{index}]: name "{step.name}" must match {workflow_grammar.NAME}'
        report.error("invalid-name", message, step.place)
    elif step.name in known:
        report.error("duplicate-step", f'duplicate step name "{step.name}"', step.place)


def _keys(step: Step, report: Report) -> None:
    """One verb, or an approval alone; and no key that belongs to another verb."""
    verbs, given = step.verbs, dict(step.given)
    if len(verbs) > 1 or (not verbs and step.approval is None):
        message = f"{step.label}: exactly one of run/workflow is required, or an approval (got {len(verbs)})"
        report.error("one-verb", message, step.place_of(verbs[1]) if verbs else step.place)
        return
    for keys, verb in ((grammar.RUN_KEYS, "run"), (grammar.WORKFLOW_KEYS, "workflow")):
        wrong = [key for key in keys if key in given] if verb not in verbs else []
        for key in wrong:
            report.error("key-of-other-verb", f"{step.label}: {key} applies only to {verb}: steps", given[key])
    for key in grammar.WORK_KEYS if not verbs else ():
        if key in given:
            hint = "write it under approval:" if key == "timeout" else None
            message = f"{step.label}: {key} applies only to run: and workflow: steps"
            report.error("key-of-other-verb", message, given[key], hint)


def _values(step: Step, report: Report) -> None:
    if step.run is not None and not step.run.text.strip():
        report.error("empty-command", f"{step.label}: run must hold a command", step.run.place)
    check_duration(step.timeout, f"{step.label}: timeout", report)
    if step.retry is not None:
        check_retry(step.label, step.retry, report)
    _one_of(step.on_failure, f"{step.label}: onFailure", grammar.ON_FAILURE, report)
    if step.approval is not None:
        _approval(step.approval, f"{step.label}: approval", report)
    names = [("env", own.name, own.place) for own in step.env]
    names += [("envInherit", name.text, name.place) for name in step.env_inherit]
    for key, name, place in names:
        if not re.fullmatch(workflow_grammar.ENV_NAME, name):
            report.error("invalid-name", f'{step.label}: {key}: "{name}" is no name of a variable', place)


def _approval(approval: Approval, label: str, report: Report) -> None:
    if approval.prompt is None or not approval.prompt.text.strip():
        message = f"{label}.prompt is required: what is to be decided"
        report.error("missing-prompt", message, approval.place, "write prompt: Release to production?")
    check_duration(approval.timeout, f"{label}.timeout", report)
    _one_of(approval.on_timeout, f"{label}.onTimeout", grammar.ON_TIMEOUT, report)
    if approval.on_timeout is not None and approval.timeout is None:
        report.error("missing-timeout", f"{label}.onTimeout needs a timeout beside it", approval.on_timeout.place)


def _one_of(text: Scalar | None, label: str, words: tuple[str, ...], report: Report) -> None:
    if text is not None and text.text not in words:
        message = f'{label} must be {"|".join(words)}, got "{text.text}"'
        report.error("invalid-value", message, text.place, suggest(text.text, words))


def _outputs(step: Step, known: Known, places: Places, report: Report) -> None:
    check_outputs(step.outputs, f"{step.label}: ", report)
    for output in step.outputs:
        _output(output, f"{step.label}: outputs.{output.name}", known, places, report)


def _output(output: Named, label: str, known: Known, places: Places, report: Report) -> None:
    """CEL over the result of the command; of the rest of the run it sees the earlier steps."""
    blanks = len(output.text.text) - len(output.text.text.lstrip())
    match compile_cel(output.text.text.strip(), STEP_OUTPUTS):
        case CompiledCel(reads=reads):
            for read in reads:
                if read.root in ("inputs", "connections"):
                    message = f"{label}: references {read.root}, which a job does not have"
                elif read.root == "steps" and read.name is not None and read.name not in known:
                    message = f"{label}: references steps.{read.name}, which is no earlier step"
                else:
                    continue
                report.error("invisible-reference", message, places.at(output.text, read.offset + blanks))
        case CelRefused(problems=problems):
            for problem in problems:
                place = places.at(output.text, problem.offset + blanks)
                report.error("invalid-expression", f"{label}: {problem.message}", place)


def _references(step: Step, known: Known, places: Places, report: Report) -> None:
    for name, text in texts_of(step):
        for part in split(text.text):
            match part:
                case Misread(message=message, offset=offset):
                    place = places.at(text, offset)
                    hint = "write ${{ steps.NAME.outputs.NAME }}"
                    report.error("invalid-expression", f"{step.label}: {name}: {message}", place, hint)
                case Reference():
                    _reference(part, f"{step.label}: {name}", known, places.at(text, part.offset), report)
                case str():
                    pass


def _reference(part: Reference, label: str, known: Known, place: Place, report: Report) -> None:
    if part.step not in known:
        message = f"{label}: references steps.{part.step}, which is no earlier step"
        report.error("invisible-reference", message, place, suggest(part.step, tuple(known)))
        return
    outputs = known[part.step]
    if outputs is not None and part.output not in outputs:
        declared = ", ".join(sorted(outputs)) or "none"
        message = f'{label}: step {part.step} has no output "{part.output}" (declared: {declared})'
        report.error("unknown-output", message, place, suggest(part.output, tuple(outputs)))


def _handed_on(step: Step, plan: Plan | None) -> frozenset[str] | None:
    """The names of a step's outputs; None where its workflow is wrong and cannot tell."""
    if step.workflow is not None:
        return None if plan is None else frozenset(output.name for output in plan.outputs)
    if step.run is None and step.approval is not None:
        return frozenset(grammar.APPROVAL_OUTPUTS)
    return frozenset(output.name for output in step.outputs)
