"""What freezing asks for when a step composes a stored workflow or task: its sound plan, by ref."""

from __future__ import annotations

from typing import Protocol

import msgspec

from flowstone.plan.model import Param, Plan, SourceFile


class StoredWorkflow(msgspec.Struct, frozen=True):
    """A workflow by its canonical ref, compiled and not frozen."""

    ref: str
    plan: Plan


class StoredTask(msgspec.Struct, frozen=True):
    """A task by its canonical ref; the one step of `plan` is its target.

    `workflow` is the ref of the workflow that it runs, None where its target is of another kind.
    `declares_inputs` tells an empty list of inputs from none at all.
    """

    ref: str
    plan: Plan
    source: SourceFile
    workflow: str | None = None
    inputs: tuple[Param, ...] = ()
    declares_inputs: bool = False


class Library(Protocol):
    """Compiles stored sources; the same ref gives the same answer all through one freeze.

    NotFound for a ref without an asset, CompileError for a source with mistakes.
    """

    def workflow(self, ref: str) -> StoredWorkflow: ...

    def task(self, ref: str) -> StoredTask: ...
