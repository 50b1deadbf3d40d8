"""freeze: a checked plan and the configuration give a frozen plan, its hash and its read set.

Everything that may change later (engines, widths, timeouts) is resolved here, once; a started run
reads nothing of it again but credentials and env values.
"""

from __future__ import annotations

from typing import assert_never

import msgspec

from flowstone.errors import FreezeError
from flowstone.expr.model import Record
from flowstone.freeze.assets import stored_unit
from flowstone.freeze.bindings import references_of
from flowstone.freeze.composition import Composition, check_exports
from flowstone.freeze.engines import Engines, Notice
from flowstone.freeze.environments import Bindings
from flowstone.freeze.judge import freeze_gate
from flowstone.freeze.prices import PriceList
from flowstone.plan.bounds import CONCURRENCY, EXEC_TIMEOUT_MS
from flowstone.plan.checks.structure import engines_of
from flowstone.plan.codec import encode_plan, plan_hash
from flowstone.plan.model import FanOut, Plan, Route, Single, SourceFile, Step, Unit
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


def freeze(
    plan: Plan, config: EngineConfig, catalog: Catalog | None = None, composition: Composition | None = None
) -> Frozen:
    """Resolve all that is open in a plan; ConfigError and FreezeError name the step.

    Without a `catalog` nothing of env assets is frozen, without a `composition` no asset is used.
    """
    freezing = _Freezing(plan, config, catalog, composition)
    steps = tuple(freezing.step(step) for step in plan.steps)
    check_exports(plan, freezing.children)
    step_width = _clamp(config.max_concurrency or config.host_concurrency) if plan.policies.reuse_units else None
    limits = msgspec.structs.replace(plan.limits, step_width=step_width)
    read_set = _read_set(plan, composition)
    frozen = _priced(msgspec.structs.replace(plan, steps=steps, limits=limits, read_set=read_set), config)
    warnings = freezing.warnings
    if catalog is not None:
        bindings = Bindings(catalog)
        frozen = bindings.plan(frozen)
        warnings = [*warnings, *bindings.warnings]
    text = encode_plan(frozen)
    return Frozen(frozen, text, plan_hash(text), tuple(freezing.engines.notices), tuple(warnings))


def _read_set(plan: Plan, composition: Composition | None) -> tuple[SourceFile, ...]:
    """Every file that the plan was made of, once; FreezeError for one that was another one at its second reading."""
    files = plan.read_set or ((plan.source,) if plan.source else ())
    found: dict[str, SourceFile] = {}
    for file in (*files, *(composition.read if composition is not None else ())):
        if found.setdefault(file.path, file).digest != file.digest:
            raise FreezeError(
                f"{file.path} changed while the plan was frozen; nothing was published.",
                code="WORKFLOW_SOURCE_CHANGED",
                hint="Run the command again.",
            )
    return tuple(found.values())


def _priced(plan: Plan, config: EngineConfig) -> Plan:
    """The plan with what its models cost, as far as that is known."""
    models = [spec.model for spec in engines_of(plan) if spec.model is not None]
    return msgspec.structs.replace(plan, prices=PriceList(config.models).of(models)) if models else plan


class _Freezing:
    """One plan while it is frozen; `children` are the plans that its steps compose, by step."""

    def __init__(
        self, plan: Plan, config: EngineConfig, catalog: Catalog | None, composition: Composition | None
    ) -> None:
        self.engines = Engines(config, plan.defaults)
        self.children: dict[str, Plan] = {}
        self._told: list[str] = []
        self._config = config
        self._catalog = catalog
        self._composition = composition

    @property
    def warnings(self) -> list[str]:
        return [*self.engines.warnings, *self._told]

    def step(self, step: Step) -> Step:
        step = msgspec.structs.replace(step, gate=freeze_gate(step, self.engines, self._config))
        action = step.action
        match action:
            case Route():
                return step
            case Single():
                return self._single(step, action.unit)
            case FanOut():
                width = action.width or _clamp(self._config.map_width) or DEFAULT_WIDTH
                fan_out = msgspec.structs.replace(action, unit=self._unit(step, action.unit), width=width)
                return msgspec.structs.replace(step, action=fan_out)
            case _:
                assert_never(action)

    def _single(self, step: Step, unit: Unit) -> Step:
        """The step of one unit. What a child is given of earlier steps is an input of the step: it is hashed."""
        frozen = self._unit(step, unit)
        inputs = step.inputs
        if isinstance(unit.spec, AssetTarget) and isinstance(frozen.spec, ChildSpec):
            assert isinstance(frozen.spec.arguments, Record)
            inputs = (*inputs, *references_of(dict(frozen.spec.arguments.fields)))
        return msgspec.structs.replace(step, action=Single(frozen), inputs=inputs)

    def _unit(self, step: Step, unit: Unit) -> Unit:
        spec: AnySpec = unit.spec
        match spec:
            case ExecSpec():
                timeout = unit.timeout_ms if unit.timeout_set else EXEC_TIMEOUT_MS
                return msgspec.structs.replace(_taught(step, unit), timeout_ms=timeout)
            case SleepSpec() | HttpSpec() | ScriptSpec() | ChildSpec() | ApprovalSpec() | LlmSpec() | AgentSpec():
                return unit
            case PromptTarget():
                return self.engines.unit(step, _taught(step, unit), spec)
            case AssetTarget():
                return self._asset(step, unit, spec)
            case _:
                assert_never(spec)

    def _asset(self, step: Step, unit: Unit, target: AssetTarget) -> Unit:
        composition = self._composition
        if composition is None:
            raise FreezeError(
                f'Step "{step.id}" uses {target.ref}, and there is no library of assets to look it up in.',
                code="COMPOSITION_INVALID",
            )
        child = composition.child(step, target, self._child)
        if child is None:
            return self._unit(step, stored_unit(step, unit, target, composition))
        self.children[step.id] = msgspec.convert(child.plan, Plan, strict=True)
        if target.env:
            self._told.append(f'Step "{step.id}": env has no effect on the workflow {child.ref}, whose steps bind it.')
        timeout = unit.timeout_ms if unit.timeout_set else None
        redact = () if child.task is None else composition.library.task(target.ref).redact
        return msgspec.structs.replace(unit, spec=child, timeout_ms=timeout, redact=redact)

    def _child(self, plan: Plan, below: Composition) -> tuple[Plan, str]:
        frozen = freeze(plan, self._config, self._catalog, below)
        self.engines.notices += frozen.notices
        self._told += frozen.warnings
        return frozen.plan, frozen.text


def _taught(step: Step, unit: Unit) -> Unit:
    """A schema on a solo step alone types its unit, which is then asked for JSON (decision 1)."""
    if not unit.has_schema and step.has_schema and isinstance(step.action, Single):
        return msgspec.structs.replace(unit, has_schema=True, schema=step.schema)
    return unit


def _clamp(width: int | None) -> int | None:
    return None if width is None else max(1, min(CONCURRENCY, width))
