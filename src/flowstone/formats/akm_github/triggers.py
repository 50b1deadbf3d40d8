"""The `on:` of a GitHub-shaped workflow → triggers: schedules first, then a start by hand."""

from __future__ import annotations

from flowstone.diagnostics import Report
from flowstone.expr.cron import CronProblem, check_cron, never_fires
from flowstone.formats.akm_common import document as ir
from flowstone.formats.akm_common.fields import span_of
from flowstone.formats.akm_github import grammar
from flowstone.plan import bounds
from flowstone.source.cursor import Cursor
from flowstone.source.tree import Mapping, Sequence
from flowstone.values import clip

_EVENTS = " and ".join(grammar.EVENT_KEYS)


def read_triggers(at: Cursor, path: str, report: Report) -> tuple[ir.Trigger, ...]:
    """All triggers; `path` is the file's, for spans. `report` is the one that `at` reports to."""
    if at.is_null or (isinstance(at.node, Mapping) and not at.node.entries):
        at.error("trigger-required", f"{at.what} must name a trigger", "write on: { workflow_dispatch: {} }")
        return ()
    found = at.mapping()
    for name, event in found.items():
        if name not in grammar.EVENT_KEYS:
            message = f'{at.what} holds the event "{clip(name, 80)}"; only {_EVENTS} start a run'
            hint = "service events are not watched; use a schedule"
            report.error("unsupported-service-event", message, event.key_place, hint)
    triggers: list[ir.Trigger] = []
    if "schedule" in found:
        triggers += _read_schedules(found["schedule"], path)
    if "workflow_dispatch" in found:
        _check_dispatch(found["workflow_dispatch"])
        triggers.append(ir.DispatchTrigger(source=span_of(path, found["workflow_dispatch"].node)))
    return tuple(triggers)


def _read_schedules(at: Cursor, path: str) -> list[ir.Trigger]:
    entries = at.items()
    if isinstance(at.node, Sequence) and not entries:
        at.error("trigger-required", f"{at.what} must hold at least one {{ cron }}")
    if len(entries) > bounds.SCHEDULES:
        at.error("step-count-limit", f"{at.what} holds {len(entries)} entries; at most {bounds.SCHEDULES}")
    triggers: list[ir.Trigger] = []
    for ordinal, entry in enumerate(entries):
        cron = _read_cron(entry)
        if cron is not None:
            source = span_of(path, entry.node)
            triggers.append(ir.ScheduleTrigger(cron=cron, ordinal=ordinal, source=source))
    return triggers


def _read_cron(at: Cursor) -> str | None:
    found = at.mapping(grammar.SCHEDULE_KEYS)
    if "cron" not in found:
        if isinstance(at.node, Mapping):
            at.error("missing-key", f'{at.what} requires "cron"')
        return None
    text = found["cron"].text()
    if text is None:
        return None
    try:
        cron = check_cron(text)
    except CronProblem as problem:
        message = f"{found['cron'].what}: {problem.message}"
        found["cron"].error("invalid-cron", message, 'write five fields: "0 6 * * *"')
        return None
    if (reason := never_fires(cron)) is not None:
        found["cron"].error("invalid-cron", f"{found['cron'].what}: {reason}", "name a day that the month has")
    return cron


def _check_dispatch(at: Cursor) -> None:
    if at.is_null or (isinstance(at.node, Mapping) and not at.node.entries):
        return
    message = f"{at.what} must be empty: a dispatch takes no inputs"
    hint = "write workflow_dispatch: {}; a Markdown workflow declares params"
    at.error("workflow-dispatch-inputs-unsupported", message, hint)
