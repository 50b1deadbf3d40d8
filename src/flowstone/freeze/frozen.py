"""freeze: a checked plan and the configuration give a frozen plan, its hash and its read set.

Everything that may change later (engines, widths, timeouts) is resolved here, once; a started run
reads nothing of it again but credentials and env values.
"""

from __future__ import annotations

from typing import assert_never

import msgspec

from flowstone.errors import FreezeError
from flowstone.freeze.engines import Engines, Notice
from flowstone.freeze.environments import Bindings
from flowstone.freeze.judge import freeze_gate
from flowstone.freeze.prices import PriceList
from flowstone.plan.bounds import CONCURRENCY, EXEC_TIMEOUT_MS
from flowstone.plan.checks.structure import engines_of
from flowstone.plan.codec import encode_plan, plan_hash
from flowstone.plan.model import FanOut, Plan, Route, Single, Step, Unit
from flowstone.plan.units import (
    AgentSpec,
    AnySpec,
    ApprovalSpec,
    AssetTarget,
    ChildSpec,
    ExecSpec,
    HttpSpec,
    LlmSpec,
    PromptTarget,
    ScriptSpec,
    SleepSpec,
)
from flowstone.ports.catalog import Catalog, EngineConfig

DEFAULT_WIDTH = 4


class Frozen(msgspec.Struct, frozen=True):
    """A plan that can be started: `text` is its canonical JSON and `hash` the SHA-256 of that.

    `notices` tell what was asked for and has no effect, `warnings` what was chosen by itself.
    """

    plan: Plan
    text: str
    hash: str
    notices: tuple[Notice, ...] = ()
    warnings: tuple[str, ...] = ()


def freeze(plan: Plan, config: EngineConfig, catalog: Catalog | None = None) -> Frozen:
    """Resolve all that is open in a plan; ConfigError and FreezeError name the step.

    Without a `catalog` nothing of env assets is frozen.
    """
    engines = Engines(config, plan.defaults)
    steps = tuple(_step(step, config, engines) for step in plan.steps)
    step_width = _clamp(config.max_concurrency or config.host_concurrency) if plan.policies.reuse_units else None
    limits = msgspec.structs.replace(plan.limits, step_width=step_width)
    read_set = plan.read_set or ((plan.source,) if plan.source else ())
    frozen = _priced(msgspec.structs.replace(plan, steps=steps, limits=limits, read_set=read_set), config)
    warnings = engines.warnings
    if catalog is not None:
        bindings = Bindings(catalog)
        frozen = bindings.plan(frozen)
        warnings = [*warnings, *bindings.warnings]
    text = encode_plan(frozen)
    return Frozen(frozen, text, plan_hash(text), tuple(engines.notices), tuple(warnings))


def _priced(plan: Plan, config: EngineConfig) -> Plan:
    """The plan with what its models cost, as far as that is known."""
    models = [spec.model for spec in engines_of(plan) if spec.model is not None]
    return msgspec.structs.replace(plan, prices=PriceList(config.models).of(models)) if models else plan


def _step(step: Step, config: EngineConfig, engines: Engines) -> Step:
    step = msgspec.structs.replace(step, gate=freeze_gate(step, engines, config))
    action = step.action
    match action:
        case Route():
            return step
        case Single():
            return msgspec.structs.replace(step, action=Single(_unit(step, action.unit, engines)))
        case FanOut():
            width = action.width or _clamp(config.map_width) or DEFAULT_WIDTH
            fan_out = msgspec.structs.replace(action, unit=_unit(step, action.unit, engines), width=width)
            return msgspec.structs.replace(step, action=fan_out)
        case _:
            assert_never(action)


def _unit(step: Step, unit: Unit, engines: Engines) -> Unit:
    spec: AnySpec = unit.spec
    match spec:
        case ExecSpec():
            timeout = unit.timeout_ms if unit.timeout_set else EXEC_TIMEOUT_MS
            return msgspec.structs.replace(_taught(step, unit), timeout_ms=timeout)
        case SleepSpec() | HttpSpec() | ScriptSpec() | ChildSpec() | ApprovalSpec() | LlmSpec() | AgentSpec():
            return unit
        case PromptTarget():
            return engines.unit(step, _taught(step, unit), spec)
        case AssetTarget():
            raise FreezeError(
                f'Step "{step.id}" uses {spec.ref}: this version of flowstone runs no stored assets.',
                code="COMPOSITION_INVALID",
                hint="Write the step as `run:` (YAML) or as `unit.exec` or prose (Markdown).",
            )
        case _:
            assert_never(spec)


def _taught(step: Step, unit: Unit) -> Unit:
    """A schema on a solo step alone types its unit, which is then asked for JSON (decision 1)."""
    if not unit.has_schema and step.has_schema and isinstance(step.action, Single):
        return msgspec.structs.replace(unit, has_schema=True, schema=step.schema)
    return unit


def _clamp(width: int | None) -> int | None:
    return None if width is None else max(1, min(CONCURRENCY, width))
