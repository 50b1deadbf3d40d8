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
from flowstone.plan.units import (
    AgentSpec,
    ApprovalSpec,
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
from flowstone.run.context import context_variables, unit_messages
from flowstone.run.identity import Identity, identify
from flowstone.run.outcome import Outcome
from flowstone.run.scope import Artifacts, result_variables, step_view
from flowstone.run.state import Attempt, StepState, UnitState
from flowstone.scheduler.commands import Turn
from flowstone.values import Json


def identity_of(turn: Turn, step: StepState, index: int) -> Identity:
    """The identity of a unit by the plan's rules."""
    policies = turn.state.plan.policies
    return identify(step, index, turn.facts.params, policies.hashing if policies.reuse_units else None)


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
    extra = {**result_variables(attempt.outcome), "attempt": attempt.number + 1}
    return _evaluate(turn, poll.until, extra)


def seal_outputs(turn: Turn, step: StepState, outcome: Outcome) -> dict[str, Json]:
    """The declared outputs of a step over its sealed result; ValueError names the bad one."""
    extra = result_variables(outcome)
    sealed = {}
    for output in step.plan.outputs:
        try:
            sealed[output.name] = _json_of(turn, output.value, extra)
        except ValueError as error:
            raise ValueError(f"outputs.{output.name}: {error}") from None
    return sealed


def prepare(turn: Turn, step: StepState, unit: UnitState, identity: Identity, number: int) -> Dispatch:
    """The dispatch of an attempt; ValueError names the place of a text that cannot be filled in."""
    declared = step.plan.unit
    assert declared is not None
    timeout = declared.timeout_ms
    if isinstance(step.plan.repeat, Poll) and unit.first_at is not None:
        left = max(1, unit.first_at + step.plan.repeat.timeout_ms - turn.now)
        timeout = left if timeout is None else min(timeout, left)
    return Dispatch(
        run=turn.state.run_id,
        step=step.id,
        unit=identity.unit,
        number=number,
        index=unit.index,
        hash=identity.hash,
        spec=_fill(turn, declared.spec),
        timeout_ms=timeout,
        context=context_variables(turn.state, turn.facts.params, step, unit.index, identity),
        schema=declared.schema,
        has_schema=declared.has_schema,
        isolation=declared.isolation,
        messages=unit_messages(turn.state, turn.facts.params, step, unit.index, identity),
        afresh=step.forgotten,
    )


def _fill(turn: Turn, spec: Any) -> UnitSpec:
    """The same spec with every template filled in."""
    match spec:
        case ExecSpec():
            return _fill_exec(turn, spec)
        case LlmSpec() | AgentSpec():
            return spec
        case SleepSpec():
            return SleepSpec(Literal(_json_of(turn, spec.duration, {})))
        case HttpSpec() | ScriptSpec() | ChildSpec():
            return msgspec.structs.replace(spec, arguments=Literal(_json_of(turn, spec.arguments, {})))
        case ApprovalSpec():
            return msgspec.structs.replace(spec, prompt=Literal(_json_of(turn, spec.prompt, {})))
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
