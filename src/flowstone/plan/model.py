"""The plan: a workflow in which the languages' differences have become data.

`lower` makes a plan of a document, `check` reads it, `freeze` turns it into a frozen plan (the
same types without targets), and the scheduler interprets it.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Any, TypeAlias

import msgspec

from flowstone.diagnostics import Place
from flowstone.expr.model import Cel, Expression, Record, Reference
from flowstone.plan.bounds import UNITS
from flowstone.plan.units import AnySpec

IR_VERSION = 5


class Join(StrEnum):
    """When a step may start."""

    ALL_SATISFIED = "all-satisfied"
    """Every need succeeded or was skipped; a failed one makes this step upstream_failed."""
    ALL_ENDED = "all-ended"
    """Every need has ended, failed ones included; an upstream_failed one still blocks."""


class OnError(StrEnum):
    """What a failed unit does to its step."""

    FAIL = "fail"
    CONTINUE = "continue"


class Reducer(StrEnum):
    COLLECT = "collect"
    VOTE = "vote"


class Once(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag="once"):
    """One attempt."""


class Backoff(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How long a repetition waits after one of `reasons`: as long as the other side asked for, else
    `base_ms` doubled each time, up to half of it more by chance, at most `cap_ms`."""

    reasons: tuple[str, ...]
    base_ms: int = 1_000
    cap_ms: int = 60_000


class Retry(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag="retry", omit_defaults=True):
    """Up to `extra` more attempts: for the listed `reasons` (None: any failure).

    The delay in milliseconds is `base_ms`, doubled each time if `exponential`, at most `cap_ms`;
    for the reasons of `backoff` that rule holds instead.
    """

    extra: int
    reasons: tuple[str, ...] | None = None
    base_ms: int = 0
    exponential: bool = False
    cap_ms: int = 3_600_000
    backoff: Backoff | None = None


class Poll(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag="poll"):
    """Attempts every `interval_ms` until `until` holds, at most for `timeout_ms`."""

    interval_ms: int
    timeout_ms: int
    until: Cel
    interval_text: str = ""
    timeout_text: str = ""


Repeat: TypeAlias = Once | Retry | Poll


class Given(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a step binds to the inputs of its target: values and references by name.

    `schemas` are those of the inputs whose values a reference brings, by name.
    """

    values: Record
    schemas: dict[str, Any] = {}

    @property
    def reads(self) -> tuple[str, ...]:
        return self.values.reads


class Unit(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """What a step dispatches, once or for each item of a fan-out.

    `timeout_ms` bounds one attempt (None: no bound; unset: 0 until frozen). `schema` is the unit's
    own output schema. `isolation` is "none" or "worktree". `task` is the ref of the task whose target
    this is, `given` what its inputs are bound to, and `redact` the variables of the host whose values the
    task wants scrubbed.
    """

    spec: AnySpec
    timeout_ms: int | None = None
    timeout_set: bool = False
    schema: Any = None
    has_schema: bool = False
    isolation: str = "none"
    task: str | None = None
    given: Given | None = None
    redact: tuple[str, ...] = ()


class Single(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag="single"):
    unit: Unit


class FanOut(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag="fan-out", omit_defaults=True):
    """One unit for each item of the list that `over` names.

    `width` is the authored number of units at a time (None until frozen: the configured default).
    """

    over: Reference
    unit: Unit
    width: int | None = None
    reducer: Reducer = Reducer.COLLECT


class Branch(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    match: str
    step: str


class Route(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag="route", omit_defaults=True):
    """Selects one later step by a scalar value; the unselected targets are skipped."""

    value: Reference
    branches: tuple[Branch, ...]
    default: str | None = None


Action: TypeAlias = Single | FanOut | Route


class Gate(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """A rubric that a judge applies to the artifact; `max_loops` counts all executions."""

    rubric: str | None = None
    max_loops: int = 1
    judge: AnySpec | None = None
    judge_timeout_ms: int | None = None
    system: str = ""
    """What the judge is told about its task."""
    loops: bool = True
    """False for a unit that cannot answer feedback: it is judged, and never executed again."""


class Output(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """A named value: of a step's sealed result, or exported by the workflow."""

    name: str
    value: Expression
    schema: Any = None
    has_schema: bool = False
    connections: tuple[str, ...] = ()
    """The connections that the value reads; each must be granted."""


class Step(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """A step: after what, whether at all, what, how often, and good enough by which rule.

    `schema` types the artifact; `outputs` are computed from the sealed result instead.
    `tolerated`: the run can succeed though this step fails.
    """

    id: str
    action: Action
    needs: tuple[str, ...] = ()
    join: Join = Join.ALL_SATISFIED
    when: Cel | None = None
    selected_by: tuple[str, ...] = ()
    repeat: Repeat = Once()
    inputs: tuple[Reference, ...] = ()
    schema: Any = None
    has_schema: bool = False
    outputs: tuple[Output, ...] = ()
    on_error: OnError = OnError.FAIL
    tolerated: bool = False
    gate: Gate | None = None
    instructions: str | None = None
    name: str | None = None
    place: Place = Place()
    connections: tuple[str, ...] = ()
    """The connections that the step uses; each must be granted before the run starts."""

    @property
    def unit(self) -> Unit | None:
        return None if isinstance(self.action, Route) else self.action.unit


class Param(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """A declared param (input): `schema` is its JSON Schema, `default` holds if `has_default`."""

    name: str
    schema: Any = None
    description: str | None = None
    required: bool = False
    has_default: bool = False
    default: Any = None
    secret: bool = False
    pattern: str | None = None
    values: tuple[Any, ...] | None = None
    type: str | None = None


class Connection(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """A declared connection. `fields` are what the plan itself grants: names of secrets, never values."""

    name: str
    type: str
    fields: tuple[tuple[str, str], ...] = ()


class Trigger(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """When the workflow starts by itself: a cron line, or None for a start by hand."""

    cron: str | None = None


class OnFailure(StrEnum):
    HALT = "halt"
    """Admit nothing more; the other steps stay pending."""
    ISOLATE = "isolate"
    """Dependents become upstream_failed; other steps go on."""


class ResumeRule(StrEnum):
    FROZEN = "frozen"
    """Go on from the frozen plan, whatever became of the source."""
    SAME_SOURCE = "same-source"
    """Refuse when the source's digest is another one."""
    PINNED = "pinned"
    """Go on from the frozen plan, and refuse when a file of its read set has another digest."""


class OnOutputError(StrEnum):
    """What happens when a workflow output cannot be resolved at completion."""

    ROLL_BACK = "roll-back"
    """Nothing is recorded: the run stays open and its last step pending."""
    FAIL_RUN = "fail-run"


class ChildRule(StrEnum):
    """Who takes a nested run up again that stopped."""

    WITH_PARENT = "with-parent"
    """Its parent, and nobody else; a repeated attempt begins a run of its own."""
    BY_HAND = "by-hand"
    """A person, as any other run; till then its parent finds it as it stopped."""


class HashRule(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """How a unit's input hash is spelt: `prefix` stands in front of the canonical JSON."""

    prefix: str = "flowstone.unit\x001\x00"
    version: int = 7
    gate_prefix: str = "flowstone.gate\x001\x00"
    child_prefix: str = "flowstone.child\x001\x00"


class Preamble(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """What stands in front of a unit's instructions in its prompt: an introduction, where the unit
    stands in the run, numbered ground rules, and a line that leads over. No `intro`: nothing."""

    intro: str = ""
    rules: tuple[str, ...] = ()
    closing: str = ""


class Policies(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """What the languages do differently about a whole run; each field is read in one place."""

    on_failure: OnFailure = OnFailure.HALT
    resume: ResumeRule = ResumeRule.FROZEN
    on_output_error: OnOutputError = OnOutputError.ROLL_BACK
    empty_text_absent: bool = True
    reuse_units: bool = True
    """Completed units of a reopened step are reused when their input hash is the same."""
    unit_cap: int | None = UNITS
    """Attempts that a run dispatches in its whole life; None is no bound."""
    children: ChildRule = ChildRule.WITH_PARENT
    hashing: HashRule = HashRule()
    preamble: Preamble = Preamble()


class Limits(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """How many units at a time: over the run, and each step at most.

    `default_run_width` holds where neither the plan nor the start names a width. `host_capped`
    has the cap of the machine apply too.
    """

    run_width: int | None = None
    default_run_width: int | None = None
    host_capped: bool = True
    step_width: int | None = None


class Budget(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """Ceilings over the whole life of a run; None is no ceiling."""

    max_units: int | None = None
    max_tokens: int | None = None


class Price(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a model costs, in US dollars for a million tokens of what it reads and of what it writes."""

    model: str
    tokens_in: float
    tokens_out: float


class SourceFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A file that compiling or freezing read: path, SHA-256 of its bytes, size in bytes."""

    path: str
    digest: str
    size: int


class Plan(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """A whole workflow. `dialect` names the vocabulary that the views use; nothing else reads it."""

    dialect: str
    name: str
    steps: tuple[Step, ...]
    title: str = ""
    description: str | None = None
    tags: tuple[str, ...] = ()
    preamble: str | None = None
    params: tuple[Param, ...] = ()
    declares_params: bool = False
    connections: tuple[Connection, ...] = ()
    outputs: tuple[Output, ...] = ()
    triggers: tuple[Trigger, ...] = ()
    defaults: Any = None
    policies: Policies = Policies()
    limits: Limits = Limits()
    budget: Budget = Budget()
    prices: tuple[Price, ...] = ()
    source: SourceFile | None = None
    read_set: tuple[SourceFile, ...] = ()
    ir_version: int = IR_VERSION

    def step(self, step_id: str) -> Step:
        return next(step for step in self.steps if step.id == step_id)
