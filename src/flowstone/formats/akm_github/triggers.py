"""The `on:` of a GitHub-shaped workflow → triggers: schedules first, then a start by hand."""

from __future__ import annotations

from flowstone.expr.cron import check_cron
from flowstone.formats.akm_common import document as ir
from flowstone.formats.akm_common.fields import span_of
from flowstone.formats.akm_github import grammar
from flowstone.plan import bounds
from flowstone.source.cursor import Cursor
from flowstone.source.tree import Mapping, Sequence
from flowstone.values import clip


def read_triggers(at: Cursor, path: str) -> tuple[ir.Trigger, ...]:
    """All triggers; `path` is the file's, for spans."""
    if at.is_null or (isinstance(at.node, Mapping) and not at.node.entries):
        at.error("trigger-required", f"{at.what} must name a trigger", "write on: { workflow_dispatch: {} }")
        return ()
    found = at.mapping()
    for name, event in found.items():
        if name not in grammar.EVENT_KEYS:
            _refuse_event(at, name, event)
    triggers: list[ir.Trigger] = []
    if "schedule" in found:
        triggers += _read_schedules(found["schedule"], path)
    if "workflow_dispatch" in found:
        _check_dispatch(found["workflow_dispatch"])
        triggers.append(ir.DispatchTrigger(source=span_of(path, found["workflow_dispatch"].node)))
    return tuple(triggers)


def _refuse_event(at: Cursor, name: str, event: Cursor) -> None:
    message = f'{at.what} holds the event "{clip(name, 80)}"; only schedule and workflow_dispatch start a run'
    here = Cursor(event.node, event.path, event.report, event.key_place)
    here.error("unsupported-service-event", message, "no service events are watched")


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
    problem = None if text is None else check_cron(text)
    if text is None:
        return None
    if problem is not None:
        found["cron"].error("invalid-cron", f"{found['cron'].what} {problem}", 'write five fields: "0 6 * * *"')
        return None
    return " ".join(text.split())


def _check_dispatch(at: Cursor) -> None:
    if at.is_null or (isinstance(at.node, Mapping) and not at.node.entries):
        return
    message = f"{at.what} must be empty: a dispatch takes no inputs"
    hint = "write workflow_dispatch: {}; a Markdown workflow declares params"
    at.error("workflow-dispatch-inputs-unsupported", message, hint)
