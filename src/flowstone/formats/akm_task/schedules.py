"""The `schedule:` of a task → time tables, each with the inputs that its runs are given."""

from __future__ import annotations

from flowstone.expr.cron import CronProblem, check_cron, never_fires
from flowstone.formats.akm_common.rules import whole_numbers
from flowstone.formats.akm_task import grammar
from flowstone.formats.akm_task.document import Schedule, TaskInput
from flowstone.formats.akm_task.inputs import BindingProblem, bind
from flowstone.plan import bounds
from flowstone.source.cursor import Cursor
from flowstone.source.tree import Mapping, Scalar, Sequence


def read_schedules(at: Cursor, inputs: tuple[TaskInput, ...]) -> tuple[Schedule, ...]:
    """One text, or a list of `{cron, inputs?}`; each must give what the inputs require."""
    if isinstance(at.node, Scalar):
        return _schedule(at, at, {}, inputs)
    entries = at.items()
    if isinstance(at.node, Sequence) and not entries:
        at.error("schedule-required", f"{at.what} must hold at least one {{ cron }}.", "leave schedule out")
    if len(entries) > bounds.SCHEDULES:
        message = f"{at.what} holds {len(entries)} entries; at most {bounds.SCHEDULES} are allowed."
        at.error("schedule-count-limit", message)
    return tuple(one for entry in entries for one in _entry(entry, inputs))


def _entry(at: Cursor, inputs: tuple[TaskInput, ...]) -> tuple[Schedule, ...]:
    found = at.mapping(grammar.SCHEDULE_KEYS)
    if not isinstance(at.node, Mapping):
        return ()
    if "cron" not in found:
        at.error("missing-key", f'{at.what} requires "cron".', 'write { cron: "0 6 * * *" }')
        return ()
    given = {}
    if "inputs" in found:
        found["inputs"].mapping()
        value = whole_numbers(found["inputs"].value())
        given = value if isinstance(value, dict) else {}
    return _schedule(found["cron"], found.get("inputs", at), given, inputs)


def _schedule(
    cron: Cursor, at: Cursor, given: dict[str, object], inputs: tuple[TaskInput, ...]
) -> tuple[Schedule, ...]:
    try:
        bind(inputs, given, "schedule-binding", f"{at.path}" if given else "inputs")
    except BindingProblem as problem:
        at.error("schedule-inputs", f"{cron.what}: {problem}.", "give it in the entry's inputs, or a default")
    text = cron.text(empty=False)
    if text is None:
        return ()
    try:
        checked = check_cron(grammar.ALIASES.get(text.strip().lower(), text))
    except CronProblem as problem:
        hint = f'write five fields ("0 6 * * *") or one of {", ".join(grammar.ALIASES)}'
        cron.error("invalid-cron", f"{cron.what}: {problem.message}.", hint)
        return ()
    if (reason := never_fires(checked)) is not None:
        cron.error("invalid-cron", f"{cron.what}: {reason}.", "name a day that the month has")
    return (Schedule(checked, dict(given)),)
