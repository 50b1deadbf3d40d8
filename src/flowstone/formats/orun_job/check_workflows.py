"""A step and the plan of its workflow → diagnostics: inputs that are given, connections that are granted."""

from __future__ import annotations

from flowstone.diagnostics import Report
from flowstone.formats.orun.dialect import CONNECTION_FIELDS
from flowstone.formats.orun.inputs import Misfit, fit
from flowstone.formats.orun_job.document import Grant, Step
from flowstone.formats.orun_job.references import OPEN
from flowstone.plan.model import Plan
from flowstone.ports.secrets import SCHEME
from flowstone.source.cursor import suggest
from flowstone.source.tree import Node, plain
from flowstone.values import canonical_json


def check_workflow(step: Step, plan: Plan, report: Report) -> None:
    """`with` are the inputs that the workflow declares, `connections` the grants of those that it declares."""
    label = f"{step.label}: workflow {plan.name}"
    _arguments(step, plan, label, report)
    types = {connection.name: connection.type for connection in plan.connections}
    for grant in step.grants:
        if grant.name not in types:
            message = f'{label} declares no connection "{grant.name}" (declared: {", ".join(sorted(types)) or "none"})'
            report.error("undeclared-connection", message, grant.place, suggest(grant.name, tuple(types)))
        else:
            _grant(grant, types[grant.name], step.label, report)


def _arguments(step: Step, plan: Plan, label: str, report: Report) -> None:
    params = {param.name: param for param in plan.params}
    given = {entry.name for entry in step.arguments}
    for entry in step.arguments:
        param = params.get(entry.name)
        if param is None:
            declared = ", ".join(sorted(params)) or "none"
            message = f'{label}: unknown input "{entry.name}" (declared: {declared})'
            report.error("unknown-input", message, entry.key.place, suggest(entry.name, tuple(params)))
        elif not _refers(entry.value):
            try:
                fit(plain(entry.value), param.type, param.values, param.pattern)
            except Misfit as error:
                why = "the value (not shown, it is secret) does not fit" if param.secret else str(error)
                report.error("invalid-value", f"{label}: inputs.{entry.name}: {why}", entry.value.place)
    for name, param in params.items():
        if param.required and not param.has_default and name not in given:
            message = f"{label}: inputs.{name} is required (with: {{ {name}: ... }})"
            report.error("missing-input", message, step.place_of("with"))


def _refers(node: Node) -> bool:
    """Whether a value is known only once an earlier step has ended."""
    return OPEN in canonical_json(plain(node))


def _grant(grant: Grant, kind: str, label: str, report: Report) -> None:
    known = CONNECTION_FIELDS[kind]
    label = f"{label}: connections.{grant.name}"
    if not grant.fields:
        message = f"{label}: {kind} needs {' or '.join(known)}"
        report.error("missing-grant", message, grant.place, f"write {{ {known[0]}: {SCHEME}env/NAME }}")
    for field in grant.fields:
        if field.name not in known:
            message = f'{label}: {kind} has no field "{field.name}" ({", ".join(known)})'
            report.error("unknown-field", message, field.place, suggest(field.name, known))
        if not field.text.text.startswith(SCHEME):
            message = f"{label}.{field.name} must name a secret: a value never stands in a file"
            report.error("secret-in-file", message, field.text.place, f"write {SCHEME}env/NAME")
