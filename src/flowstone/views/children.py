"""The runs that a run composes, as the tree of its status, and the commands that take up a blocked one."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from flowstone.plan.model import ChildRule
from flowstone.plan.units import ChildSpec
from flowstone.run.events import RunStatus, Status
from flowstone.run.outcome import Reason
from flowstone.run.record import NestedRun
from flowstone.run.state import State
from flowstone.views.moments import iso
from flowstone.views.words import Word


def children_view(children: Iterable[NestedRun], word: Word, root: str) -> dict[str, Any]:
    """`{"children": […]}`, the oldest first, or nothing for a run without any (akm facts 20)."""
    shown = [_node(child, word, root) for child in children]
    return {"children": shown} if shown else {}


def blocked_child(state: State) -> dict[str, Any] | None:
    """Which child holds a run, and the commands to go on; None where none does."""
    step = next((s for s in state.order if s.status is Status.HELD and s.reason is Reason.CHILD_BLOCKED), None)
    if step is None:
        return None
    spec = step.plan.unit.spec if step.plan.unit is not None else None
    child = next(_children_of_stopped(state), None)
    ref = spec.ref if isinstance(spec, ChildSpec) else None
    return {"stepId": step.id, "childRunId": child, "childRef": ref, **_commands(str(child), state.run_id)}


def stopped_with_a_child(state: State) -> bool:
    """Whether a run stopped with a nested one that a person must take up first."""
    by_hand = state.plan.policies.children is ChildRule.BY_HAND
    return by_hand and next(_children_of_stopped(state), None) is not None


def stopped_below(state: State, children: Iterable[NestedRun]) -> tuple[str, ...]:
    """The nested runs that a person must take up before a run that stopped with them, the deepest first."""
    if state.plan.policies.children is not ChildRule.BY_HAND:
        return ()
    nodes, found = {child.row.record.id: child for child in children}, list[str]()
    node = next((nodes[run] for run in _children_of_stopped(state) if run in nodes), None)
    while node is not None:
        found.append(node.row.record.id)
        stopped = [child for child in node.below if child.row.summary.status in (RunStatus.FAILED, RunStatus.HELD)]
        node = stopped[-1] if stopped else None
    return tuple(reversed(found))


def caller_of(child: NestedRun) -> str:
    """The step of the parent that nests a run."""
    return (child.row.record.parent_unit or "").partition(":")[0]


def _node(child: NestedRun, word: Word, root: str) -> dict[str, Any]:
    record, summary = child.row.record, child.row.summary
    node: dict[str, Any] = {
        "runId": record.id,
        "workflowRef": record.ref,
        "workflowTitle": record.title,
        "status": word(summary.status),
        "spawnedByUnitId": record.parent_unit,
        "stepId": caller_of(child),
        "currentStepId": summary.current_step,
        "createdAt": iso(record.created_at),
        "updatedAt": iso(summary.updated_at or record.created_at),
    }
    if summary.status is RunStatus.HELD:
        commands = _commands(record.id, root)
        node["resume"] = {"command": commands["resume"], "then": commands["then"]}
    return {**node, **children_view(child.below, word, root)}


def _children_of_stopped(state: State) -> Iterator[str]:
    """The runs with which the steps of a run stopped."""
    for step in state.order:
        if step.reason in (Reason.CHILD_BLOCKED, Reason.CHILD_FAILED):
            runs = [attempt.outcome.child_run for attempt in step.final_attempts() if attempt.outcome is not None]
            yield from (run for run in runs if run is not None)


def _commands(child: str, root: str) -> dict[str, str]:
    return {
        "resume": f"akm workflow resume {child}",
        "then": f"akm workflow resume {root} && akm workflow run {root}",
    }
