"""A step that composes a stored workflow, directly or by a task → the child's whole frozen plan in the step.

Everything is read, compiled, checked and frozen before the run that is frozen is published; its unit
reads nothing again. Limits hold for the whole tree below one root.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from flowstone.errors import FreezeError
from flowstone.expr.model import Record, Reference
from flowstone.freeze.bindings import Bound, Surface, authored, bind
from flowstone.plan.bounds import CHILD_BYTES, CHILD_LEVELS
from flowstone.plan.checks.nesting import embedded_bytes, exports_of
from flowstone.plan.codec import DEPTH, plan_hash
from flowstone.plan.model import FanOut, Plan, Route, SourceFile, Step
from flowstone.plan.units import AssetTarget, ChildSpec
from flowstone.ports.library import Library, StoredTask, StoredWorkflow
from flowstone.values import decode_json

TASKS, WORKFLOWS = "tasks", "workflows"
FreezeChild = Callable[[Plan, "Composition"], tuple[Plan, str]]
"""Freezes the plan of a child below its parent: the frozen plan, and its text in canonical JSON."""


class Composition:
    """The place of one workflow in the tree below a root: the way to it, tasks included."""

    def __init__(self, library: Library, root: str) -> None:
        self.library = library
        self._way: tuple[str, ...] = (root,)
        self._workflows: tuple[str, ...] = (root,)
        self._size = [0]
        """Bytes of all plans embedded below the root; one count for the whole tree."""
        self.read: list[SourceFile] = []
        """The sources of the children so far with all that they nest, and of the tasks on the way to them."""

    def child(self, step: Step, target: AssetTarget, freeze: FreezeChild) -> ChildSpec | None:
        """The child that a step composes; None for a target that leads to no workflow.

        NotFound and CompileError tell of its source, FreezeError of a limit, InputError of bindings.
        """
        task = self.library.task(target.ref) if family_of(target.ref) == TASKS else None
        ref = target.ref if task is None else task.workflow
        if ref is None or family_of(ref) != WORKFLOWS:
            return None
        found = self.library.workflow(ref)
        below = self._below(step, found, task)
        plan, text = freeze(found.plan, below)
        self._size[0] += embedded_bytes(plan)
        if self._size[0] > CHILD_BYTES:
            raise _refused(
                step,
                found.ref,
                f"the embedded child plans would total {self._size[0]} bytes, over the {CHILD_BYTES}-byte limit "
                "for one workflow run",
                "Compose fewer or smaller workflows; what a task or a script can do needs no workflow.",
            )
        bound, schemas = _bindings(step, target, found, task)
        self.read += [*([task.source] if task is not None else ()), *plan.read_set]
        return ChildSpec(
            ref=found.ref,
            arguments=Record(tuple(bound.items())),
            plan=decode_json(text, whole_floats=False, max_depth=DEPTH),
            digest=found.plan.source.digest if found.plan.source is not None else "",
            hash=plan_hash(text),
            task=None if task is None else task.ref,
            schemas=schemas or None,
        )

    def _below(self, step: Step, found: StoredWorkflow, task: StoredTask | None) -> Composition:
        """The place of the child; FreezeError where it would be its own ancestor, or too deep."""
        way = (*self._way, *([task.ref] if task is not None else ()), found.ref)
        path = f"Path: {' -> '.join(way)}"
        if found.ref in self._workflows:
            hint = "Take one of these steps out, or end the chain with a workflow that composes none of the others."
            raise _refused(step, found.ref, f"that would create a composition cycle. {path}", hint)
        if len(self._workflows) > CHILD_LEVELS:
            hint = "Put what the deepest workflows do into one of them."
            raise _refused(step, found.ref, f"workflow composition is limited to {CHILD_LEVELS} levels. {path}", hint)
        below = Composition(self.library, found.ref)
        below._way, below._workflows, below._size = way, (*self._workflows, found.ref), self._size
        return below


def family_of(ref: str) -> str:
    """The type of an asset ref."""
    return ref.rpartition("//")[2].partition("/")[0]


def check_exports(plan: Plan, children: dict[str, Plan]) -> None:
    """Refuse a reference into a child's outputs that the child does not declare (akm facts 20)."""
    for reader, reference in _readings(plan):
        child = children.get(reference.name) if reference.root == "steps" else None
        if child is None or not reference.path:
            continue
        known = exports_of(child)
        if reference.path[0] not in known:
            raise FreezeError(
                f'Step "{reader}" reads {reference.text}, but the workflow of step "{reference.name}" exports no '
                f'"{reference.path[0]}"; it exports: {", ".join(known)}.',
                code="COMPOSITION_INVALID",
                hint="Read one of these, or declare it under `outputs:` of that workflow.",
            )


def _readings(plan: Plan) -> list[tuple[str, Reference]]:
    """Who reads which reference: every one that a plan holds before it is frozen."""
    found: list[tuple[str, Reference]] = [
        (output.name, output.value) for output in plan.outputs if isinstance(output.value, Reference)
    ]
    for step in plan.steps:
        found += [(step.id, reference) for reference in step.inputs]
        if isinstance(step.action, Route):
            found.append((step.id, step.action.value))
        elif isinstance(step.action, FanOut):
            found.append((step.id, step.action.over))
        spec = step.unit.spec if step.unit is not None else None
        if isinstance(spec, AssetTarget) and family_of(spec.ref) in (TASKS, WORKFLOWS):
            found += [(step.id, value) for value in authored(spec).values() if isinstance(value, Reference)]
    return found


def _bindings(
    step: Step, target: AssetTarget, found: StoredWorkflow, task: StoredTask | None
) -> tuple[Bound, dict[str, Any]]:
    """What the child gets: by way of the task's inputs where there is a task, which fill in their defaults.

    Also the schemas of those inputs that a reference is bound to.
    """
    given = authored(target)
    label = f'Step "{step.id}" ({target.ref})'
    schemas: dict[str, Any] = {}
    if task is not None:
        if target.has_arguments and not task.declares_inputs:
            raise FreezeError(
                f"{label}: the task declares no inputs, so it takes no with, not even an empty one.",
                code="COMPOSITION_INVALID",
                hint=f"Leave with out, or declare inputs in {task.ref}.",
            )
        given = bind(Surface(label, task.inputs, "inputs", fills=True), given)
        schemas = {one.name: one.schema for one in task.inputs if isinstance(given.get(one.name), Reference)}
        label = f"{label}, which runs {found.ref}"
    return bind(Surface(label, found.plan.params, "params"), given), schemas


def _refused(step: Step, ref: str, reason: str, hint: str) -> FreezeError:
    return FreezeError(
        f"Workflow step {step.id} cannot compose {ref}: {reason}.", code="COMPOSITION_INVALID", hint=hint
    )
