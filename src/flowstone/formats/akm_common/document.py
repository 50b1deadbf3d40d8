"""The document that both akm parsers make of a source: source IR v1, before it is lowered to a plan.

Fields stand here in snake case and in camel case in the encoded IR (`source_ir`). A part that an
author left out is None, empty or UNSET; `timeout_ms` None means "no limit".
"""

from __future__ import annotations

from typing import Any, Literal, TypeAlias

import msgspec
from msgspec import UNSET, UnsetType

from flowstone.diagnostics import Place

Timeout: TypeAlias = int | UnsetType | None
"""Milliseconds, None for "none", or UNSET where the author says nothing."""

MARKDOWN_EXTENSION = "akm.dev/workflow-markdown"
GITHUB_EXTENSION = "github.com/actions-workflow"
MARKDOWN_JOB = "contract"
BUILTIN_COMMAND = "akm/command"


class _Part(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True, forbid_unknown_fields=True):
    """What all parts of the IR share: closed, immutable, absent parts left out."""


class Span(_Part, frozen=True):
    """Where a part stands in its source: from the place of its first node to that of its last."""

    path: str
    start: Place
    end: Place


class ScheduleTrigger(_Part, frozen=True, tag_field="kind", tag="schedule"):
    cron: str
    ordinal: int
    source: Span


class DispatchTrigger(_Part, frozen=True, tag_field="kind", tag="workflow_dispatch"):
    source: Span


Trigger: TypeAlias = ScheduleTrigger | DispatchTrigger


class Retries(_Part, frozen=True):
    max: int
    on: tuple[str, ...]


class Defaults(_Part, frozen=True):
    """What units inherit: each field as on the unit."""

    engine: str | None = None
    model: str | None = None
    llm: dict[str, Any] | None = None
    timeout_ms: Timeout = UNSET
    on_error: Literal["fail", "continue"] | None = None


class UnitOptions(_Part, frozen=True):
    """The dispatch overrides of a step; `env` lists refs of env assets."""

    engine: str | None = None
    model: str | None = None
    llm: dict[str, Any] | None = None
    timeout_ms: Timeout = UNSET
    retry: Retries | None = None
    on_error: Literal["fail", "continue"] | None = None
    output: dict[str, Any] | None = None
    env: tuple[str, ...] = ()
    isolation: Literal["none", "worktree"] | None = None


class Exec(_Part, frozen=True):
    command: tuple[str, ...]
    cwd: str | None = None
    pass_env: tuple[str, ...] = ()


class MapOptions(_Part, frozen=True):
    over: str
    concurrency: int | None = None
    reducer: Literal["collect", "vote"] | None = None


class Branch(_Part, frozen=True):
    match: str
    step_id: str


class RouteOptions(_Part, frozen=True):
    input: str
    branches: tuple[Branch, ...]
    default_step_id: str | None = None


class GateOptions(_Part, frozen=True):
    max_loops: int | None = None
    rubric: str | None = None


class Export(_Part, frozen=True):
    """A run-level output: the reference that it is read from, and its schema."""

    from_: str = msgspec.field(name="from")
    schema: dict[str, Any] | None = None


class Step(_Part, frozen=True):
    """A step: exactly one of `uses`, `run` and `exec`, or a `route` and none of them.

    `env` holds literal values as text. `with_` is None where the author wrote no `with:`.
    """

    id: str
    source: Span
    name: str | None = None
    uses: str | None = None
    run: str | None = None
    exec: Exec | None = None
    command_mode: Literal["literal", "stored-ref", "portable-template"] | None = None
    with_: dict[str, Any] | None = msgspec.field(default=None, name="with")
    env: dict[str, str] | None = None
    shell: str | None = None
    working_directory: str | None = None
    unit: UnitOptions | None = None
    map: MapOptions | None = None
    route: RouteOptions | None = None
    inputs: tuple[str, ...] = ()
    output: dict[str, Any] | None = None
    gate: GateOptions | None = None
    instructions: str | None = None
    extensions: dict[str, Any] | None = None


class Job(_Part, frozen=True):
    id: str
    source: Span
    needs: tuple[str, ...]
    steps: tuple[Step, ...]
    name: str | None = None
    extensions: dict[str, Any] | None = None


class Budget(_Part, frozen=True):
    max_tokens: int | None = None
    max_units: int | None = None


class Document(_Part, frozen=True):
    """A whole akm workflow, whichever format it was written in."""

    source_ir_version: Literal[1]
    name: str
    triggers: tuple[Trigger, ...]
    jobs: tuple[Job, ...]
    source: Span
    description: str | None = None
    tags: tuple[str, ...] = ()
    params: dict[str, dict[str, Any]] | None = None
    defaults: Defaults | None = None
    budget: Budget | None = None
    preamble: str | None = None
    outputs: dict[str, Export] | None = None
    extensions: dict[str, Any] | None = None

    @property
    def steps(self) -> tuple[Step, ...]:
        """The steps of the one job that a document has."""
        return self.jobs[0].steps
