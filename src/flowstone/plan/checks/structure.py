"""Checks a whole plan, whatever language it came from: bounds, graph and visibility.

`lower` only makes plans that pass; the frozen-plan decoder checks again, since a stored plan may
have been altered.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from typing import Any

import msgspec

from flowstone.expr.schema_check import check_schema
from flowstone.plan import bounds
from flowstone.plan.graph import ancestors, find_cycle
from flowstone.plan.model import FanOut, Plan, Poll, Retry, Route, Step
from flowstone.plan.reads import reads_of, unit_reads
from flowstone.plan.units import (
    AgentSpec,
    ApprovalSpec,
    AssetTarget,
    ChildSpec,
    EngineSpec,
    EnvRef,
    ExecSpec,
    LlmSpec,
    PromptTarget,
)
from flowstone.values import canonical_bytes


def problems_of(plan: Plan) -> list[str]:
    """What is wrong with a plan, one sentence each; empty for a sound one."""
    found = list(_sizes(plan))
    ids = Counter(step.id for step in plan.steps)
    found += [f'step id "{name}" is used twice' for name, times in sorted(ids.items()) if times > 1]
    needs = {step.id: step.needs for step in plan.steps}
    for step in plan.steps:
        found += [f'step "{step.id}" needs unknown step "{need}"' for need in step.needs if need not in needs]
        found += [f'step "{step.id}": {text}' for text in _step(step)]
    if cycle := find_cycle(needs):
        return [*found, f"the steps form a cycle: {' -> '.join(cycle)}"]
    return found if found else list(_visibility(plan))


def targets_of(plan: Plan) -> tuple[str, ...]:
    """The steps whose unit freezing has not resolved."""
    specs = ((s.id, spec) for s in plan.steps for spec in (s.unit and s.unit.spec, s.gate and s.gate.judge))
    return tuple(step for step, spec in specs if isinstance(spec, (PromptTarget, AssetTarget)))


def engines_of(plan: Plan) -> Iterator[EngineSpec]:
    """Every spec of a model or an agent in a plan, judges and fallbacks among them."""
    for step in plan.steps:
        for spec in (step.unit and step.unit.spec, step.gate and step.gate.judge):
            if isinstance(spec, AgentSpec) and spec.fallback is not None:
                yield spec.fallback
            if isinstance(spec, (LlmSpec, AgentSpec)):
                yield spec


def env_refs_of(plan: Plan) -> Iterator[EnvRef]:
    """Every env asset that a frozen plan's steps bind."""
    for step in plan.steps:
        spec = step.unit.spec if step.unit else None
        if isinstance(spec, (ExecSpec, AgentSpec)):
            yield from (binding for binding in spec.env if isinstance(binding, EnvRef))


def _sizes(plan: Plan) -> Iterator[str]:
    counts = (
        ("steps", len(plan.steps), bounds.STEPS if plan.policies.reuse_units else None),
        ("params", len(plan.params), bounds.PARAMS if plan.policies.reuse_units else None),
        ("outputs", len(plan.outputs), bounds.OUTPUTS if plan.policies.reuse_units else None),
    )
    for name, count, limit in counts:
        if limit is not None and count > limit:
            yield f"{count} {name}, more than {limit}"
    engines = len({spec.engine for spec in engines_of(plan)})
    if engines > bounds.ENGINES:
        yield f"{engines} engines, more than {bounds.ENGINES}"
    if not plan.steps:
        yield "a plan has at least one step"
    units = plan.budget.max_units
    if units is not None and not 1 <= units <= bounds.UNITS:
        yield f"budget.max_units is {units}, not from 1 to {bounds.UNITS}"


def _step(step: Step) -> Iterator[str]:
    if not re.fullmatch(bounds.STEP_ID, step.id):
        yield "the id has characters that no id may have"
    if step.gate is not None and not 1 <= step.gate.max_loops <= bounds.MAX_LOOPS:
        yield f"max_loops is {step.gate.max_loops}, not from 1 to {bounds.MAX_LOOPS}"
    if step.has_schema:
        yield from _schema(step.schema, "the output schema")
    yield from _action(step)
    yield from _judge(step)
    match step.repeat:
        case Retry(extra=extra, base_ms=base, cap_ms=cap) if extra < 0 or base < 0 or cap < 0:
            yield "a retry allowance and its delays are not negative"
        case Retry(extra=extra) if extra > bounds.MORE_ATTEMPTS:
            yield f"a retry allowance of {extra} is more than {bounds.MORE_ATTEMPTS}"
        case Poll(interval_ms=interval, timeout_ms=timeout) if interval <= 0 or timeout <= 0:
            yield "poll interval and timeout are positive"
        case _:
            pass


def _action(step: Step) -> Iterator[str]:
    action = step.action
    if isinstance(action, Route):
        if not 1 <= len(action.branches) <= bounds.ROUTE_BRANCHES:
            yield f"{len(action.branches)} branches, not from 1 to {bounds.ROUTE_BRANCHES}"
        return
    if isinstance(action, FanOut) and action.width is not None and not 1 <= action.width <= bounds.CONCURRENCY:
        yield f"width {action.width} is not from 1 to {bounds.CONCURRENCY}"
    unit = action.unit
    if unit.timeout_ms is not None and unit.timeout_ms <= 0:
        yield "a timeout is positive"
    if unit.has_schema:
        yield from _schema(unit.schema, "the unit's output schema")
    if isinstance(unit.spec, ExecSpec):
        yield from _command(unit.spec)
    if isinstance(unit.spec, ApprovalSpec) and unit.spec.timeout_ms is not None and unit.spec.timeout_ms <= 0:
        yield "a timeout is positive"
    if isinstance(unit.spec, ChildSpec) and unit.spec.plan is not None:
        yield from _nested(unit.spec.plan)
    if isinstance(unit.spec, (LlmSpec, AgentSpec)):
        yield from _engine(unit.spec)


def _command(spec: ExecSpec) -> Iterator[str]:
    if not spec.argv:
        yield "a command has at least one argument"
    name = spec.script.name if spec.script is not None else "script"
    if name in ("", ".", "..") or "/" in name or "\0" in name:
        yield f"{name!r} is no name of a script's file"


def _nested(built: Any) -> Iterator[str]:
    try:
        plan = msgspec.convert(built, Plan, strict=True)
    except msgspec.ValidationError as error:
        yield f"the nested plan is damaged: {error}"
        return
    yield from (f"the nested plan: {text}" for text in problems_of(plan))


def _judge(step: Step) -> Iterator[str]:
    gate = step.gate
    if gate is None or gate.judge is None:
        return
    if not isinstance(gate.judge, (LlmSpec, AgentSpec)) or not gate.judge.judges:
        yield "a judge is a model or an agent"
        return
    if gate.judge_timeout_ms is not None and gate.judge_timeout_ms <= 0:
        yield "a timeout is positive"
    yield from _engine(gate.judge)


def _engine(spec: EngineSpec) -> Iterator[str]:
    name = spec.engine
    if not re.fullmatch(bounds.ENGINE_NAME, name) or len(name) > bounds.ENGINE_NAME_CHARS:
        yield f'"{name}" is no name of an engine'
    if len(spec.content.encode("utf-8", "surrogatepass")) > bounds.INSTRUCTION_BYTES:
        yield f"the instructions are larger than {bounds.INSTRUCTION_BYTES} bytes"
    if spec.concurrency is not None and not 1 <= spec.concurrency <= bounds.CONCURRENCY:
        yield f'engine "{name}" has concurrency {spec.concurrency}, not from 1 to {bounds.CONCURRENCY}'
    if isinstance(spec, AgentSpec):
        if spec.fallback is not None:
            yield from _engine(spec.fallback)
        return
    if len(canonical_bytes(spec.extra_params)) > bounds.EXTRA_PARAMS_BYTES:
        yield f'the extra params of engine "{name}" are larger than {bounds.EXTRA_PARAMS_BYTES} bytes'
    if spec.max_tokens is not None and spec.max_tokens <= 0:
        yield f'engine "{name}" has max_tokens {spec.max_tokens}, which must be positive'


def _schema(schema: Any, label: str) -> Iterator[str]:
    yield from (problem.message for problem in check_schema(schema, label))


def _visibility(plan: Plan) -> Iterator[str]:
    """What a step reads must come before it, and what a route selects comes after it."""
    before = ancestors(plan)
    known = set(before)
    routes = {step.id: targets for step in plan.steps if (targets := _targets(step)) is not None}
    for step in plan.steps:
        for name in (*reads_of(step), *unit_reads(step)):
            if name not in before[step.id] and name != step.id:
                yield f'step "{step.id}" reads step "{name}", which does not come before it'
        for name in step.selected_by:
            if step.id not in routes.get(name, ()):
                yield f'step "{step.id}" is said to be selected by "{name}", which is no route to it'
    for router, targets in routes.items():
        for target in targets:
            if router not in before.get(target, ()) or router not in plan.step(target).selected_by:
                yield f'route "{router}" selects "{target}", which is no later step that waits for it'
    for output in plan.outputs:
        yield from _schema(output.schema, f'the schema of output "{output.name}"') if output.has_schema else ()
        yield from (
            f'output "{output.name}" reads unknown step "{name}"' for name in output.value.reads if name not in known
        )


def _targets(step: Step) -> tuple[str, ...] | None:
    """The steps that a route may select; None for a step that is no route."""
    if not isinstance(step.action, Route):
        return None
    named = [branch.step for branch in step.action.branches]
    return tuple(dict.fromkeys(named if step.action.default is None else [*named, step.action.default]))
