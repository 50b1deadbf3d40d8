"""What freezing asks for when a step uses a stored asset: a sound plan, a prompt or a script, by ref."""

from __future__ import annotations

from typing import Any, Protocol

import msgspec

from flowstone.plan.model import Param, Plan, SourceFile


class StoredWorkflow(msgspec.Struct, frozen=True):
    """A workflow by its canonical ref, compiled and not frozen."""

    ref: str
    plan: Plan


class StoredTask(msgspec.Struct, frozen=True):
    """A task by its canonical ref; the one step of `plan` is its target.

    `workflow` is the ref of the workflow that it runs, None where its target is of another kind.
    `declares_inputs` tells an empty list of inputs from none at all. `redact` are variables of the host
    whose values are to be scrubbed.
    """

    ref: str
    plan: Plan
    source: SourceFile
    workflow: str | None = None
    inputs: tuple[Param, ...] = ()
    declares_inputs: bool = False
    redact: tuple[str, ...] = ()


class StoredCommand(msgspec.Struct, frozen=True):
    """A stored prompt by its canonical ref, the arguments filled in, and the hints beside it.

    `agent` is a ref or a name; `inference` is the tuning as authored, unchecked.
    """

    ref: str
    content: str
    source: SourceFile
    agent: str | None = None
    engine: str | None = None
    model: str | None = None
    inference: Any = None
    tools: tuple[str, ...] = ()


class StoredAgent(msgspec.Struct, frozen=True):
    """A stored persona by its canonical ref, and the hints beside it."""

    ref: str
    persona: str
    source: SourceFile
    engine: str | None = None
    model: str | None = None
    inference: Any = None
    tools: tuple[str, ...] = ()


class StoredScript(msgspec.Struct, frozen=True):
    """A stored script by its canonical ref: the name of its file, and its bytes."""

    ref: str
    name: str
    data: bytes
    source: SourceFile


class Library(Protocol):
    """Reads and compiles stored sources; the same ref gives the same answer all through one freeze.

    NotFound for a ref without an asset, CompileError for a source with mistakes.
    """

    def workflow(self, ref: str) -> StoredWorkflow:
        """The workflow that a ref names."""

    def task(self, ref: str) -> StoredTask:
        """The task that a ref names, whatever it runs."""

    def command(self, ref: str, arguments: str) -> StoredCommand:
        """The command of a ref with its arguments filled in; CompileError for one that cannot be used."""

    def agent(self, ref: str) -> StoredAgent:
        """The persona of a ref; CompileError for one that cannot be used."""

    def script(self, ref: str) -> StoredScript:
        """The script of a ref, whatever its bytes are."""
