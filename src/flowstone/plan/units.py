"""Unit specs: what gets dispatched, one frozen type a kind.

All that the languages do differently about a command is a field of `ExecSpec`. A spec in a plan
may hold templates; `flowstone.scheduler.bindings` resolves them, so that a dispatcher sees the
same types with plain texts only. A `Target` is what an author named and freezing has not resolved
yet: no frozen plan holds one.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Any, TypeAlias

import msgspec

from flowstone.expr.model import Expression, Text


class CwdRule(StrEnum):
    """Where a relative working directory starts, and how far it may lead."""

    CONTAINED = "contained"
    """Below the folder in which the run was started, symlinks resolved just before the spawn."""
    RUN_FOLDER = "run-folder"
    """Unset: the run's own folder; a relative one: from the folder in which the driver works."""


class Overflow(StrEnum):
    """What output beyond the capture limit does to the artifact; the command always runs on."""

    MARK = "mark"
    """A marker block is appended; with a schema the unit fails exec_output_limit."""
    DROP = "drop"
    """The prefix is kept as it is."""


class Drain(StrEnum):
    """What a pipe means that a descendant still holds after the grace."""

    STDOUT_FAILS = "stdout-fails"
    """Held stdout fails the unit exec_capture_incomplete; held stderr is a warning."""
    KEEP = "keep"
    """What was read is kept; the group is ended."""


class CaptureRule(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """Bounds of the captured streams: bytes kept of each, grace in milliseconds for a held pipe."""

    limit: int = 8 * 1024 * 1024
    overflow: Overflow = Overflow.MARK
    drain: Drain = Drain.STDOUT_FAILS
    grace_ms: int = 2_000
    strip_newlines: bool = True
    keep_streams: bool = False
    """Keep exit code, stdout and stderr in the outcome for later expressions."""


class LiteralEnv(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag="literal"):
    name: str
    value: Text
    secret: bool = True
    """Values bound by `env:` are scrubbed from what the command prints."""


class PassEnv(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag="pass-through"):
    name: str


class EnvRef(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag="env-ref"):
    """An env asset: its bundle, keys and secret names are frozen, values are read at dispatch.

    Without an `owner` nothing of it could be frozen: a unit that binds it will say why.
    """

    ref: str
    keys: tuple[str, ...] = ()
    secret_names: tuple[str, ...] = ()
    owner: str | msgspec.UnsetType = msgspec.UNSET
    """Left out where it is unset, so that plans of before it was frozen keep their hashes."""


EnvBinding: TypeAlias = LiteralEnv | PassEnv | EnvRef


class EnvironmentRule(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """How a child's environment is built: `base` names first, then provenance, bindings, context.

    `context` is the prefix of the context variables ("AKM_"), or None for none; `limit_one` and
    `limit_all` bound them in bytes. `shim` puts the run's own program folder in front of PATH.
    """

    base: tuple[str, ...] = ("PATH", "HOME")
    context: str | None = None
    limit_one: int = 98_304
    limit_all: int = 131_072
    shim: str | None = None
    """Name of the program that the shim folder holds."""


class ScriptFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """A stored script that a command runs: its bytes are frozen, written for the command alone, and deleted.

    Its path is the last argument of the command. `name` keeps the ending that interpreters look at;
    `interpreters` are further names of the program, for machines that know it by one of them only.
    """

    ref: str
    name: str
    data: bytes
    interpreters: tuple[str, ...] = ()


class ExecSpec(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag="exec", omit_defaults=True):
    """A command: spawned directly from `argv`, never through a shell."""

    argv: tuple[Text, ...]
    cwd: Text | None = None
    cwd_rule: CwdRule = CwdRule.CONTAINED
    env: tuple[EnvBinding, ...] = ()
    environment: EnvironmentRule = EnvironmentRule()
    capture: CaptureRule = CaptureRule()
    script: ScriptFile | None = None


class Credential(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """Where an engine's key is read from at dispatch: the first of `names` that is set, else `file`.

    `required`: without a key nothing is sent. No value is ever in a plan.
    """

    names: tuple[str, ...] = ()
    file: str | None = None
    required: bool = False


class LlmSpec(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag="llm", omit_defaults=True):
    """One question to a model behind an OpenAI-compatible endpoint, its engine frozen in it.

    `content` are the instructions (empty for a judge, which `judges`: its answer is a verdict).
    `supports_json_schema` None: the schema is sent along, and left out where the server refuses it.
    `concurrency` is how many units of the engine run at a time. `persona` is the system text, empty for none.
    """

    content: str
    engine: str
    endpoint: str
    model: str
    provider: str | None = None
    credential: Credential = Credential()
    temperature: float | None = None
    max_tokens: int | None = None
    supports_json_schema: bool | None = None
    extra_params: Any = None
    context_length: int | None = None
    enable_thinking: bool | None = None
    reasoning_effort: str | None = None
    concurrency: int | None = None
    schema_name: str = "response"
    judges: bool = False
    persona: str = ""


class AgentSpec(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag="agent", omit_defaults=True):
    """One task for an agent program, its engine frozen in it; `platform` names the harness.

    `passed` are the variables of the host that every agent program gets; its harness names more.
    `model` None leaves the choice to the program. `fallback` is the model engine of a platform that
    talks to one. `inference` is the tuning that was asked for, for harnesses that can pass it on.
    `context` begins the names of the variables by which the program, and whatever it starts, knows the
    run and the unit that it works for; None for none. `persona` is the system text, empty for none; `tools`
    are those that the program may use without asking, beside its own settings.
    """

    content: str
    engine: str
    platform: str
    bin: str | None = None
    args: tuple[str, ...] = ()
    workspace: str | None = None
    model: str | None = None
    agent: str | None = None
    env: tuple[EnvBinding, ...] = ()
    inference: Any = None
    fallback: LlmSpec | None = None
    concurrency: int | None = None
    judges: bool = False
    passed: tuple[str, ...] = ()
    context: str | None = None
    persona: str = ""
    tools: tuple[str, ...] = ()


EngineSpec: TypeAlias = LlmSpec | AgentSpec


class SleepSpec(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag="sleep"):
    """Wait for a duration (text as authored, or milliseconds once resolved)."""

    duration: Expression


class HttpSpec(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag="http"):
    """One HTTP request; `arguments` is the authored mapping, `connection` names the grant."""

    arguments: Expression
    connection: str | None = None


class ScriptSpec(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag="script"):
    """Sandboxed JavaScript: `arguments` is the authored mapping of source and input."""

    arguments: Expression


class TakeUp(StrEnum):
    """When the run that an earlier attempt of a child unit began is gone on with, instead of a new one."""

    FIRST_ATTEMPT = "first-attempt"
    """In the first attempt of an execution; a retry starts anew."""
    ALWAYS = "always"
    """In every attempt: what succeeded in the child stands."""
    UNFINISHED = "unfinished"
    """In the first attempt, unless the child failed: one that a crash or a signal stopped goes on."""


class ChildSpec(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag="child", omit_defaults=True):
    """A workflow run as a unit; `plan` is the child's whole plan once frozen.

    `grants` tells which connection of this plan the child gets under which name, where they differ.
    `provenance` are the variables that tell where a fetched child came from; without them its
    commands get those of the run that nests it. `digest` is that of the child's source, `hash` that
    of its plan. A child that a task stands in front of has its ref as `task`; `schemas` are then
    those of the task's inputs whose values are known when the unit is dispatched only, by name.
    """

    ref: str
    arguments: Expression
    plan: Any = None
    digest: str = ""
    provenance: tuple[tuple[str, str], ...] = ()
    grants: tuple[tuple[str, str], ...] = ()
    take_up: TakeUp = TakeUp.FIRST_ATTEMPT
    hash: str = ""
    task: str | None = None
    schemas: Any = None


class ApprovalSpec(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag="approval", omit_defaults=True):
    """A person's decision, waited for until `timeout_ms` after it was first asked for (None: for ever).

    `approve_on_timeout` is what the end of that time decides; `guards` is the step that it lets go.
    """

    prompt: Expression
    timeout_ms: int | None = None
    approve_on_timeout: bool = False
    guards: str | None = None


class PromptTarget(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag="prompt-target", omit_defaults=True):
    """Instructions for a model or agent whose engine freezing selects.

    `model` and `llm` are the unit's, or else (merged with) the document's; `own_model` tells that
    the unit named the model, and `own_llm` is its part of the tuning. `values` are variables that the
    author wrote down, `persona` is a stored agent's text, `agent` the program's own name of one, and
    `tools` are those that the author asks for.
    """

    content: str
    engine: str | None = None
    model: str | None = None
    llm: Any = None
    env: tuple[str, ...] = ()
    own_model: bool = False
    own_llm: Any = None
    values: tuple[LiteralEnv, ...] = ()
    persona: str = ""
    agent: str | None = None
    tools: tuple[str, ...] = ()


class AssetTarget(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag="asset-target", omit_defaults=True):
    """A stored asset or built-in (`uses:`) that freezing resolves; `arguments` is its `with:`.

    `environment` is that of a command, should the target be one. `prompt` is how a prompt is asked for,
    where the author says so; its content counts for nothing.
    """

    ref: str
    arguments: Any = None
    has_arguments: bool = False
    mode: str | None = None
    env: tuple[EnvBinding, ...] = ()
    environment: EnvironmentRule | None = None
    prompt: PromptTarget | None = None


Target: TypeAlias = PromptTarget | AssetTarget
UnitSpec: TypeAlias = ExecSpec | LlmSpec | AgentSpec | SleepSpec | HttpSpec | ScriptSpec | ChildSpec | ApprovalSpec
AnySpec: TypeAlias = UnitSpec | Target
