"""freeze: a checked plan and the configuration give a frozen plan, its hash and its read set.

Everything that may change later (engines, widths, timeouts) is resolved here, once; a started run
reads nothing of it again but credentials and env values.
"""

from __future__ import annotations

from typing import assert_never

import msgspec

from flowstone.errors import ConfigError, FreezeError
from flowstone.plan.bounds import CONCURRENCY, EXEC_TIMEOUT_MS
from flowstone.plan.codec import encode_plan, plan_hash
from flowstone.plan.model import FanOut, Gate, Plan, Route, Single, Step, Unit
from flowstone.plan.units import (
    AnySpec,
    AssetTarget,
    ChildSpec,
    ExecSpec,
    HttpSpec,
    PromptTarget,
    ScriptSpec,
    SleepSpec,
)
from flowstone.ports.catalog import EngineConfig

DEFAULT_WIDTH = 4


class Frozen(msgspec.Struct, frozen=True):
    """A plan that can be started: `text` is its canonical JSON and `hash` the SHA-256 of that."""

    plan: Plan
    text: str
    hash: str


def freeze(plan: Plan, config: EngineConfig) -> Frozen:
    """Resolve all that is open in a plan; ConfigError and FreezeError name the step."""
    steps = tuple(_step(step, config) for step in plan.steps)
    step_width = _clamp(config.max_concurrency or config.host_concurrency) if plan.policies.reuse_units else None
    limits = msgspec.structs.replace(plan.limits, step_width=step_width)
    read_set = plan.read_set or ((plan.source,) if plan.source else ())
    frozen = msgspec.structs.replace(plan, steps=steps, limits=limits, read_set=read_set)
    text = encode_plan(frozen)
    return Frozen(frozen, text, plan_hash(text))


def _step(step: Step, config: EngineConfig) -> Step:
    _check_gate(step, step.gate, config)
    action = step.action
    match action:
        case Route():
            return step
        case Single():
            return msgspec.structs.replace(step, action=Single(_unit(step, action.unit, config)))
        case FanOut():
            width = action.width or _clamp(config.map_width) or DEFAULT_WIDTH
            fan_out = msgspec.structs.replace(action, unit=_unit(step, action.unit, config), width=width)
            return msgspec.structs.replace(step, action=fan_out)
        case _:
            assert_never(action)


def _unit(step: Step, unit: Unit, config: EngineConfig) -> Unit:
    spec: AnySpec = unit.spec
    match spec:
        case ExecSpec():
            _check_isolation(step, unit)
            has_schema, schema = _taught_schema(step, unit)
            timeout = unit.timeout_ms if unit.timeout_set else EXEC_TIMEOUT_MS
            return msgspec.structs.replace(unit, timeout_ms=timeout, has_schema=has_schema, schema=schema)
        case ChildSpec(plan=None):
            raise FreezeError(
                f'Step "{step.id}" nests {spec.ref}: only files can be nested.',
                hint="Fetch the file, put it beside this workflow and name it by its path.",
            )
        case SleepSpec() | HttpSpec() | ScriptSpec() | ChildSpec():
            return unit
        case PromptTarget():
            raise _no_engine(step, spec, config)
        case AssetTarget():
            raise FreezeError(
                f'Step "{step.id}" uses {spec.ref}: this version of flowstone runs commands only.',
                code="COMPOSITION_INVALID",
                hint="Write the step as `run:` (YAML) or as `unit.exec` (Markdown).",
            )
        case _:
            assert_never(spec)


def _check_isolation(step: Step, unit: Unit) -> None:
    """A unit that asks for a tree of its own must not run in the user's instead."""
    if unit.isolation != "none":
        raise FreezeError(
            f'Step "{step.id}" asks for isolation: {unit.isolation}: this version of flowstone runs commands in place.',
            code="ISOLATION_UNSUPPORTED",
            hint="Remove `isolation:`.",
        )


def _taught_schema(step: Step, unit: Unit) -> tuple[bool, object]:
    """A schema on a solo step alone types its unit: stdout is then one JSON value (decision 1)."""
    if not unit.has_schema and step.has_schema and isinstance(step.action, Single):
        return True, step.schema
    return unit.has_schema, unit.schema


def _no_engine(step: Step, target: PromptTarget, config: EngineConfig) -> ConfigError:
    name = target.engine or config.default_engine
    engines = config.engines or {}
    if name is None:
        return ConfigError(
            f'Step "{step.id}" needs an engine and none is configured.',
            hint='akm config set engines.<name> \'{"kind": "llm", …}\' and akm config set defaults.engine <name>',
        )
    if name not in engines:
        return ConfigError(
            f'Engine "{name}" is not configured. Step "{step.id}" needs it.',
            hint=f'akm config set engines.{name} \'{{"kind": "llm", "endpoint": "…", "model": "…"}}\'',
        )
    return ConfigError(
        f'Step "{step.id}" asks engine "{name}": this version of flowstone dispatches commands only.',
        hint="Give the step a command (unit.exec).",
    )


def _check_gate(step: Step, gate: Gate | None, config: EngineConfig) -> None:
    if gate is None or not gate.rubric:
        return
    if config.judge_engine is None or config.judge_engine not in (config.engines or {}):
        raise ConfigError(
            f'Step "{step.id}" has a gate rubric and no judge is configured.',
            hint="akm config set workflow.judgeEngine <engine>",
        )
    raise ConfigError(
        f'Step "{step.id}" has a gate rubric: this version of flowstone asks no judge.',
        hint="Check the result in a command, or remove the rubric.",
    )


def _clamp(width: int | None) -> int | None:
    return None if width is None else max(1, min(CONCURRENCY, width))
