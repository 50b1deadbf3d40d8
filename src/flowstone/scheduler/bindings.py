"""Bindings: what a unit gets. Expressions are evaluated, templates filled in, identities hashed.

A unit's identity is its id and its input hash; its dispatch holds the spec with plain texts only,
the context variables and the schema.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from flowstone.expr.model import Cel, Expression, Literal, Reference, Template, Text
from flowstone.expr.refs import resolve as resolve_reference
from flowstone.plan.model import Poll
from flowstone.plan.prompts import Messages, PromptContext, unit_messages
from flowstone.plan.units import (
    AgentSpec,
    ChildSpec,
    ExecSpec,
    HttpSpec,
    LiteralEnv,
    LlmSpec,
    ScriptSpec,
    SleepSpec,
    UnitSpec,
)
from flowstone.ports.dispatcher import Dispatch
from flowstone.run.events import Status
from flowstone.run.outcome import Outcome
from flowstone.run.state import Attempt, State, StepState, UnitState
from flowstone.scheduler.commands import Turn
from flowstone.values import Json, canonical_json, sha256_hex


class Opening(msgspec.Struct):
    """What a step's units share: resolved inputs by reference text, and the items of a fan-out.

    `seen` counts equal items, so that each unit has an id of its own; `ids` holds the ids so far.
    `latest` is the identity that was asked for last, with its index.
    """

    inputs: dict[str, Any]
    items: list[Any] | None = None
    seen: dict[str, int] = {}
    ids: list[str] = []
    spelt: list[str] = []
    hash_head: str | None = None
    hash_tail: str = ""
    context: tuple[tuple[str, str], ...] | None = None
    latest: tuple[int, Identity] | None = None


class Identity(msgspec.Struct, frozen=True):
    unit: str
    hash: str
    item: str | None


class Prepared(msgspec.Struct, frozen=True):
    dispatch: Dispatch


def resolve(turn: Turn, reference: Reference) -> Json:
    """The value of a bare reference; Unresolved says why there is none."""
    return resolve_reference(reference, turn.facts.params, Artifacts(turn.state))


def value_type(value: Any) -> str:
    """What CEL calls the type of a value, for the message about a condition that is no bool."""
    from flowstone.expr.cel_values import type_of

    return type_of(value)


def evaluate_condition(turn: Turn, cel: Cel) -> Any:
    return _evaluate(turn, cel, {})


def evaluate_output(turn: Turn, expression: Expression) -> Json:
    """The value of a workflow output, as JSON."""
    if isinstance(expression, Reference):
        return resolve(turn, expression)
    return _json_of(turn, expression, {})


def evaluate_until(turn: Turn, step: StepState, poll: Poll, attempt: Attempt) -> Any:
    assert attempt.outcome is not None
    extra = {**_result_variables(attempt.outcome), "attempt": attempt.number + 1}
    return _evaluate(turn, poll.until, extra)


def seal_outputs(turn: Turn, step: StepState, outcome: Outcome) -> dict[str, Json]:
    """The declared outputs of a step over its sealed result; ValueError names the bad one."""
    extra = _result_variables(outcome)
    sealed = {}
    for output in step.plan.outputs:
        try:
            sealed[output.name] = _json_of(turn, output.value, extra)
        except ValueError as error:
            raise ValueError(f"outputs.{output.name}: {error}") from None
    return sealed


def identify(turn: Turn, step: StepState, index: int) -> Identity:
    """The id and input hash of a unit; units of a fan-out are identified in item order."""
    opening: Opening = step.opening
    if opening.latest is not None and opening.latest[0] == index:
        return opening.latest[1]
    unit, item = _unit_id(step, opening, index)
    digest = ""
    if turn.state.plan.policies.reuse_units:
        if opening.hash_head is None:
            _prepare_hash(turn, step, opening)
        digest = sha256_hex(f"{opening.hash_head}{item or 'null'}{opening.hash_tail}")
    identity = Identity(unit, digest, item)
    opening.latest = (index, identity)
    return identity


def prepare(turn: Turn, step: StepState, unit: UnitState, identity: Identity, number: int) -> Prepared:
    """The dispatch of an attempt; ValueError names the place of a text that cannot be filled in."""
    declared = step.plan.unit
    assert declared is not None
    timeout = declared.timeout_ms
    if isinstance(step.plan.repeat, Poll) and unit.first_at is not None:
        left = max(1, unit.first_at + step.plan.repeat.timeout_ms - turn.now)
        timeout = left if timeout is None else min(timeout, left)
    dispatch = Dispatch(
        run=turn.state.run_id,
        step=step.id,
        unit=identity.unit,
        number=number,
        index=unit.index,
        hash=identity.hash,
        spec=_fill(turn, declared.spec),
        timeout_ms=timeout,
        context=_context(turn, step, unit.index, identity),
        schema=declared.schema,
        has_schema=declared.has_schema,
        isolation=declared.isolation,
        messages=_messages(turn, step, unit.index, identity),
    )
    return Prepared(dispatch)


class Artifacts(Mapping[str, Any]):
    """The artifacts of the steps that have one: those that succeeded."""

    def __init__(self, state: State) -> None:
        self._state = state

    def __getitem__(self, step_id: str) -> Any:
        step = self._state.steps.get(step_id)
        if step is None or step.status is not Status.SUCCEEDED:
            raise KeyError(step_id)
        return step.artifact

    def __iter__(self) -> Any:
        return (s.id for s in self._state.order if s.status is Status.SUCCEEDED)

    def __len__(self) -> int:
        return sum(1 for _ in self)


def _unit_id(step: StepState, opening: Opening, index: int) -> tuple[str, str | None]:
    if opening.items is None:
        return f"{step.id}:solo{_loop_suffix(step)}", None
    while len(opening.ids) <= index:
        spelt = canonical_json(opening.items[len(opening.ids)])
        base = f"{step.id}.unit:{sha256_hex(spelt)}"
        times = opening.seen[base] = opening.seen.get(base, 0) + 1
        opening.ids.append(f"{base}{'' if times == 1 else f'#{times}'}{_loop_suffix(step)}")
        opening.spelt.append(spelt)
    return opening.ids[index], opening.spelt[index]


def _loop_suffix(step: StepState) -> str:
    """Units of a further execution have ids of their own, if they can answer feedback at all."""
    gate = step.plan.gate
    return f"~l{step.loop}" if step.loop > 1 and (gate is None or gate.loops) else ""


def _prepare_hash(turn: Turn, step: StepState, opening: Opening) -> None:
    """Spell what all units of a step share around the item, once (akm facts 9.5)."""
    unit, rule = step.plan.unit, turn.state.plan.policies.hashing
    assert unit is not None
    spec: dict[str, Any] = msgspec.to_builtins(unit.spec)
    before = {
        "environment": spec.pop("env", []),
        "frozenTarget": {**spec, "timeoutMs": None},
        "hashVersion": rule.version,
        "inputs": [{"reference": key, "value": value} for key, value in opening.inputs.items()],
        "isolation": unit.isolation,
    }
    after = {
        "nodeId": step.id if opening.items is None else f"{step.id}.unit",
        "params": turn.facts.params,
        "role": "unit",
        "schema": unit.schema if unit.has_schema else None,
        "stepId": step.id,
        "template": step.plan.instructions,
    }
    if step.feedback is not None:
        before["gateFeedback"] = {"feedback": step.feedback.feedback, "missing": list(step.feedback.missing)}
    opening.hash_head = f'{rule.prefix}{canonical_json(before)[:-1]},"item":'
    opening.hash_tail = f",{canonical_json(after)[1:]}"


def _context(turn: Turn, step: StepState, index: int, identity: Identity) -> tuple[tuple[str, str], ...]:
    """The context variables of a command (akm facts 3.6); none where the plan asks for none."""
    spec = step.plan.unit.spec if step.plan.unit else None
    prefix = spec.environment.context if isinstance(spec, ExecSpec) else None
    if prefix is None:
        return ()
    opening: Opening = step.opening
    if opening.context is None:
        shared = [
            (f"{prefix}RUN_ID", turn.state.run_id),
            (f"{prefix}STEP_ID", step.id),
            (f"{prefix}PARAMS", canonical_json(turn.facts.params)),
        ]
        if opening.inputs:
            shared.append((f"{prefix}INPUTS", canonical_json(opening.inputs)))
        opening.context = tuple(shared)
    own: tuple[tuple[str, str], ...] = ((f"{prefix}UNIT_ID", identity.unit),)
    if identity.item is not None:
        own += ((f"{prefix}ITEM", identity.item), (f"{prefix}ITEM_INDEX", str(index)))
    return opening.context + own


def _messages(turn: Turn, step: StepState, index: int, identity: Identity) -> Messages:
    """What a unit's model or agent is told; nothing for units that no one talks to."""
    unit = step.plan.unit
    if unit is None or not isinstance(unit.spec, (LlmSpec, AgentSpec)):
        return ()
    opening: Opening = step.opening
    rejected = step.feedback
    context = PromptContext(
        run=turn.state.run_id,
        step=step.id,
        unit=identity.unit,
        params=turn.facts.params,
        item=identity.item,
        index=index,
        inputs=opening.inputs,
        feedback=rejected.feedback if rejected is not None else None,
        missing=rejected.missing if rejected is not None else (),
        schema=unit.schema,
        has_schema=unit.has_schema,
    )
    return unit_messages(unit.spec.content, turn.state.plan.policies.preamble, context)


def _fill(turn: Turn, spec: Any) -> UnitSpec:
    """The same spec with every template filled in."""
    match spec:
        case ExecSpec():
            return _fill_exec(turn, spec)
        case LlmSpec() | AgentSpec():
            return spec
        case SleepSpec():
            return SleepSpec(Literal(_json_of(turn, spec.duration, {})))
        case HttpSpec():
            return HttpSpec(Literal(_json_of(turn, spec.arguments, {})), spec.connection)
        case ScriptSpec():
            return ScriptSpec(Literal(_json_of(turn, spec.arguments, {})))
        case ChildSpec():
            return ChildSpec(spec.ref, Literal(_json_of(turn, spec.arguments, {})), spec.plan, spec.digest)
    raise ValueError(f"{type(spec).__name__} is a target that freezing has not resolved")


def _fill_exec(turn: Turn, spec: ExecSpec) -> ExecSpec:
    if not _has_templates(spec):
        return spec
    argv = tuple(_text(turn, word, f"run[{place}]") for place, word in enumerate(spec.argv))
    cwd = None if spec.cwd is None else _text(turn, spec.cwd, "cwd")
    env = tuple(
        LiteralEnv(b.name, _text(turn, b.value, f"env.{b.name}"), b.secret) if isinstance(b, LiteralEnv) else b
        for b in spec.env
    )
    return msgspec.structs.replace(spec, argv=argv, cwd=cwd, env=env)


def _has_templates(spec: ExecSpec) -> bool:
    texts = [*spec.argv, spec.cwd, *(b.value for b in spec.env if isinstance(b, LiteralEnv))]
    return any(isinstance(text, Template) for text in texts)


def _text(turn: Turn, text: Text, place: str) -> str:
    if isinstance(text, str):
        return text
    from flowstone.expr.cel_values import stringify

    try:
        return stringify(_evaluate(turn, text, {}))
    except ValueError as error:
        raise ValueError(f"{place}: {error}") from None


def _json_of(turn: Turn, expression: Expression, extra: Mapping[str, Any]) -> Json:
    from flowstone.expr.cel_values import to_json

    return to_json(_evaluate(turn, expression, extra))


def _evaluate(turn: Turn, expression: Expression, extra: Mapping[str, Any]) -> Any:
    from flowstone.expr.scope import Scope, evaluate_expression

    scope = Scope(turn.facts.params, Artifacts(turn.state), _variables(turn, extra))
    return evaluate_expression(expression, scope)


def _variables(turn: Turn, extra: Mapping[str, Any]) -> Callable[[str, tuple[str, ...]], Any]:
    """Values of the root variables of CEL; of steps only those that the expression reads."""

    def variable(root: str, names: tuple[str, ...]) -> Any:
        if root == "inputs":
            return turn.facts.params
        if root == "connections":
            return turn.facts.connections
        if root == "steps":
            return {name: step_view(turn.state.steps[name]) for name in names if name in turn.state.steps}
        return extra[root]

    return variable


def step_view(step: StepState) -> dict[str, Any]:
    """What an expression sees of a step that has ended."""
    result = step.result or Outcome()
    outputs = step.artifact if step.status is Status.SUCCEEDED and isinstance(step.artifact, dict) else {}
    return {
        "outputs": outputs,
        "status": _WORDS.get(step.status, step.status.value),
        "failed": step.status is Status.FAILED,
        "skipped": step.status is Status.SKIPPED,
        "exitCode": result.exit_code or 0,
        "stdout": result.stdout or "",
        "stderr": result.stderr or "",
    }


_WORDS = {Status.UPSTREAM_FAILED: "blocked"}


def _result_variables(outcome: Outcome) -> dict[str, Any]:
    return {
        "output": outcome.value if isinstance(outcome.value, dict) else {},
        "exitCode": outcome.exit_code or 0,
        "stdout": outcome.stdout or "",
        "stderr": outcome.stderr or "",
    }
