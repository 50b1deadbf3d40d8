"""Env assets that steps bind → their bundle and names, frozen; their values are read at dispatch."""

from __future__ import annotations

import msgspec

from flowstone.errors import FlowstoneError
from flowstone.plan.model import FanOut, Plan, Single, Step, Unit
from flowstone.plan.units import AgentSpec, EnvBinding, EnvRef, ExecSpec
from flowstone.ports.catalog import Catalog

REFUSED = ("DANGEROUS_ENV_KEY", "PATH_ESCAPE_VIOLATION")
"""What is wrong with an asset whatever becomes of it; the rest is told by the unit that needs it."""


class Bindings:
    """Freezes the env assets of one plan. `warnings` name variables that make programs run other code."""

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog
        self._known: dict[str, EnvRef] = {}
        self.warnings: list[str] = []

    def plan(self, plan: Plan) -> Plan:
        """The plan with what can be known of its env assets; raises for one that must not be used."""
        return msgspec.structs.replace(plan, steps=tuple(self._step(step) for step in plan.steps))

    def _step(self, step: Step) -> Step:
        action = step.action
        match action:
            case Single() | FanOut() if _binds(action.unit):
                frozen = msgspec.structs.replace(action, unit=self._unit(action.unit))
                return msgspec.structs.replace(step, action=frozen)
        return step

    def _unit(self, unit: Unit) -> Unit:
        spec = unit.spec
        assert isinstance(spec, (ExecSpec, AgentSpec))
        found: list[EnvBinding] = []
        for binding in spec.env:
            frozen = self._ref(binding) if isinstance(binding, EnvRef) else binding
            if not isinstance(frozen, EnvRef) or frozen not in found:
                found.append(frozen)
        return msgspec.structs.replace(unit, spec=msgspec.structs.replace(spec, env=tuple(found)))

    def _ref(self, binding: EnvRef) -> EnvRef:
        if binding.ref not in self._known:
            self._known[binding.ref] = self._looked_up(binding)
        return self._known[binding.ref]

    def _looked_up(self, binding: EnvRef) -> EnvRef:
        try:
            names = self._catalog.env_names(binding.ref)
        except FlowstoneError as error:
            if error.code in REFUSED:
                raise
            return binding
        if names.dangerous:
            listed = ", ".join(names.dangerous)
            self.warnings.append(f"{names.ref} sets {listed}, which makes programs run other code.")
        return EnvRef(names.ref, names.keys, names.secret_names, names.owner)


def _binds(unit: Unit) -> bool:
    return isinstance(unit.spec, (ExecSpec, AgentSpec)) and any(isinstance(b, EnvRef) for b in unit.spec.env)
