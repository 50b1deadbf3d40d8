"""Document → diagnostics: every guarantee that the language gives at compile time but expressions.

Each function checks one section of the reference; the words are orun's.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable

from flowstone.diagnostics import Place, Report
from flowstone.expr.duration import parse_go_duration
from flowstone.formats.orun import grammar
from flowstone.formats.orun.check_actions import check_action
from flowstone.formats.orun.check_inputs import check_inputs
from flowstone.formats.orun.document import Document, Named, Poll, Retry, Step
from flowstone.formats.orun.expressions import check_expressions
from flowstone.formats.orun.places import Places
from flowstone.plan.graph import closure, find_cycle
from flowstone.source.cursor import suggest
from flowstone.source.tree import Scalar


def check(document: Document, places: Places, report: Report) -> None:
    """Report all that is wrong within one file; what other files say is checked by `children`."""
    _header(document, report)
    check_inputs(document.inputs, report)
    _connections(document, report)
    check_outputs(document.outputs, "", report)
    before = _graph(document, report)
    for step in document.steps:
        _step(step, document, report)
    check_expressions(document, before, places, report)


def _header(document: Document, report: Report) -> None:
    if not re.fullmatch(grammar.NAME, document.name):
        message = f'metadata.name "{document.name}" must match {grammar.NAME}'
        report.error("invalid-name", message, document.place)
    if not document.steps:
        report.error("no-steps", f"workflow {document.name} declares no steps", document.steps_place)
    if document.max_parallel is not None and document.max_parallel < 1:
        message = f"maxParallel must be >= 1, got {document.max_parallel}"
        report.error("out-of-range", message, document.max_parallel_place)


def _connections(document: Document, report: Report) -> None:
    known = ", ".join(grammar.CONNECTION_TYPES)
    for connection in document.connections:
        label = f"connections.{connection.name}"
        if not re.fullmatch(grammar.CONNECTION_NAME, connection.name):
            message = f"{label}: name must match {grammar.CONNECTION_NAME}"
            report.error("invalid-name", message, connection.place)
        if connection.type is None:
            report.error("missing-type", f"{label}: type is required ({known})", connection.place)
        elif connection.type.text not in grammar.CONNECTION_TYPES:
            message = f'{label}: unknown type "{connection.type.text}" ({known})'
            report.error("unknown-type", message, connection.type.place)


def check_outputs(outputs: Iterable[Named], prefix: str, report: Report) -> None:
    for output in outputs:
        if not re.fullmatch(grammar.OUTPUT_NAME, output.name):
            message = f'{prefix}outputs: name "{output.name}" must match {grammar.OUTPUT_NAME}'
            report.error("invalid-name", message, output.place)


def _graph(document: Document, report: Report) -> dict[str, frozenset[str]]:
    """Check names and needs; the ancestors of each step, as far as they can be told."""
    counts = Counter(step.name for step in document.steps)
    seen: set[str] = set()
    for index, step in enumerate(document.steps):
        if not re.fullmatch(grammar.NAME, step.name):
            message = f'steps[{index}]: name "{step.name}" must match {grammar.NAME}'
            report.error("invalid-name", message, step.place)
        elif step.name in seen:
            report.error("duplicate-step", f'duplicate step name "{step.name}"', step.place)
        seen.add(step.name)
        _needs(step, counts, report)
    needs = {step.name: [need.text for need in step.needs if need.text != step.name] for step in document.steps}
    if cycle := find_cycle(needs):
        message = f"workflow {document.name}: needs edges form a cycle: {' → '.join(cycle)}"
        first = document.step(cycle[0])
        report.error("cycle", message, first.place_of("needs") if first else document.place)
        return {name: _reachable(name, needs) for name in needs}
    return closure(needs)


def _needs(step: Step, known: Counter[str], report: Report) -> None:
    seen: set[str] = set()
    for need in step.needs:
        name = need.text
        if name == step.name:
            report.error("needs-itself", f"{step.label}: needs itself", need.place)
        elif name in seen:
            report.error("duplicate-needs", f'{step.label}: duplicate needs "{name}"', need.place)
        elif name not in known:
            message = f'{step.label}: needs unknown step "{name}"'
            report.error("unknown-step", message, need.place, suggest(name, tuple(known)))
        seen.add(name)


def _reachable(start: str, needs: dict[str, list[str]]) -> frozenset[str]:
    """What a step comes after in a graph that has cycles, so that no error follows from the cycle."""
    found: set[str] = set()
    waiting = list(needs[start])
    while waiting:
        name = waiting.pop()
        if name in needs and name not in found:
            found.add(name)
            waiting += needs[name]
    return frozenset(found - {start})


def _step(step: Step, document: Document, report: Report) -> None:
    verbs = step.verbs
    if len(verbs) != 1:
        message = f"{step.label}: exactly one of run/action/workflow is required (got {len(verbs)})"
        place = step.place_of(verbs[1]) if verbs else step.place
        report.error("one-verb", message, place)
    _keys_of_verb(step, report)
    _connection(step, document, report)
    check_duration(step.timeout, f"{step.label}: timeout", report)
    if step.retry is not None:
        if step.poll is not None:
            message = f"{step.label}: poll and retry exclude each other; the poll loop tries again by itself"
            report.error("poll-and-retry", message, step.retry.place)
        check_retry(step.label, step.retry, report)
    if step.poll is not None:
        _poll(step, step.poll, report)
    _environment(step, report)
    check_outputs(step.outputs, f"{step.label}: ", report)
    if step.action is not None:
        check_action(step, step.action, report)


def _keys_of_verb(step: Step, report: Report) -> None:
    given = dict(step.given)
    if "run" not in step.verbs and step.verbs:
        wrong = [given[key] for key in ("env", "envInherit", "cwd") if key in given]
        if wrong:
            message = f"{step.label}: env/envInherit/cwd apply only to run: steps"
            report.error("key-of-other-verb", message, min(wrong))
    if "with" in given and step.verbs == ("run",):
        message = f"{step.label}: with: applies only to action/workflow steps"
        report.error("key-of-other-verb", message, given["with"])


def _connection(step: Step, document: Document, report: Report) -> None:
    if step.connection is None:
        return
    name, place = step.connection.text, step.connection.place
    if step.verbs and "action" not in step.verbs:
        message = f"{step.label}: connection applies only to action: steps"
        report.error("key-of-other-verb", message, place)
    declared = tuple(connection.name for connection in document.connections)
    if name not in declared:
        message = f'{step.label}: connection "{name}" is not declared under connections'
        report.error("undeclared-connection", message, place, suggest(name, declared))


def check_duration(text: Scalar | None, label: str, report: Report, zero: bool = False) -> None:
    """A positive Go duration, or zero where that is allowed."""
    if text is None:
        return
    try:
        length = parse_go_duration(text.text)
    except ValueError as error:
        report.error("invalid-duration", f"{label}: {error}", text.place)
        return
    if length < 0 or (length == 0 and not zero):
        wanted = "not be negative" if zero else "be a positive duration"
        report.error("invalid-duration", f'{label} must {wanted}, got "{text.text}"', text.place)
    elif length > grammar.LONGEST_MS * 1_000_000:
        report.error("invalid-duration", f'{label} is longer than ten years: "{text.text}"', text.place)


def check_retry(label: str, retry: Retry, report: Report) -> None:
    label = f"{label}: retry"
    if retry.max_retries is None or retry.max_retries < 1:
        report.error("out-of-range", f"{label}.maxRetries must be >= 1", retry.place)
    elif retry.max_retries > grammar.RETRIES:
        report.error("out-of-range", f"{label}.maxRetries must be <= {grammar.RETRIES}", retry.place)
    check_duration(retry.base_delay, f"{label}.baseDelay", report, zero=True)
    if retry.kind is not None and retry.kind.text not in grammar.RETRY_KINDS:
        message = f'{label}.kind must be fixed|exponential, got "{retry.kind.text}"'
        report.error("invalid-value", message, retry.kind.place)


def _poll(step: Step, poll: Poll, report: Report) -> None:
    for key, text in (("interval", poll.interval), ("timeout", poll.timeout)):
        if text is None:
            message = f"{step.label}: poll.{key} must be a positive duration"
            report.error("invalid-duration", message, poll.place, f"write {key}: 30s")
        check_duration(text, f"{step.label}: poll.{key}", report)
    if poll.until is None:
        report.error("missing-until", f"{step.label}: poll.until is required", poll.place)


def _environment(step: Step, report: Report) -> None:
    names: list[tuple[str, str, Place]] = [("env", variable.name, variable.place) for variable in step.env]
    names += [("envInherit", name.text, name.place) for name in step.env_inherit]
    for key, name, place in names:
        if not re.fullmatch(grammar.ENV_NAME, name):
            message = f'{step.label}: {key}: "{name}" is no name of a variable'
            report.error("invalid-name", message, place)
