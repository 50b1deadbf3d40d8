"""A task file as data: what it runs, the inputs that it declares, when, and with which limits."""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import UNSET

from flowstone.formats.akm_common.document import Timeout
from flowstone.formats.akm_common.targets import Family


class TaskInput(msgspec.Struct, frozen=True, omit_defaults=True):
    """A declared input. `schema` is the enforced one, without `default` and the own `required`."""

    name: str
    schema: dict[str, Any]
    required: bool = False
    has_default: bool = False
    default: Any = None

    @property
    def described(self) -> str | None:
        text = self.schema.get("description")
        return text if isinstance(text, str) else None


class Schedule(msgspec.Struct, frozen=True, omit_defaults=True):
    """One time table: five fields, an alias written out, and the inputs that its runs are given."""

    cron: str
    inputs: dict[str, Any] = {}


class Target(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a task runs: a ref (`uses`), or a shell text (`run`) that may use shell syntax.

    `family` is None for a shell text. `arguments` is the `with:` of akm/command.
    """

    uses: str | None = None
    family: Family | None = None
    run: str | None = None
    shell: str = "sh"
    working_directory: str | None = None
    arguments: dict[str, str] | None = None
    env: dict[str, str] = {}


class Dispatch(msgspec.Struct, frozen=True, omit_defaults=True):
    """How a prompt of the task reaches a model or agent."""

    agent: str | None = None
    engine: str | None = None
    model: str | None = None
    inference: dict[str, Any] | None = None
    tools: Any = None
    output: dict[str, Any] | None = None


class Task(msgspec.Struct, frozen=True):
    """A sound task. `declares_inputs` tells `inputs: {}` from no `inputs` at all.

    `version` is the one that the file has, 2 or 3 where it was converted. `timeout_ms` None means
    no limit.
    """

    version: int
    target: Target
    name: str | None = None
    description: str | None = None
    when_to_use: str | None = None
    tags: tuple[str, ...] = ()
    inputs: tuple[TaskInput, ...] = ()
    declares_inputs: bool = False
    schedules: tuple[Schedule, ...] = ()
    dispatch: Dispatch = Dispatch()
    timeout_ms: Timeout = UNSET
    redact: tuple[str, ...] = ()
    max_steps: int | None = None
    max_retries: int | None = None
