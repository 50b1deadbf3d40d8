"""Performs child units: has a nested workflow run and makes its end an outcome of the step."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

import msgspec

from flowstone.expr.model import Literal
from flowstone.expr.schema import validate
from flowstone.plan.model import Plan
from flowstone.plan.units import ChildSpec
from flowstone.ports.children import ChildRuns, Invocation
from flowstone.ports.dispatcher import Dispatch
from flowstone.run.outcome import Outcome, Reason, failed


class ChildDispatcher:
    """What the child exports is the value of the unit; that it did not succeed is the unit's failure."""

    def __init__(self, runs: ChildRuns) -> None:
        self._runs = runs
        self._plans: dict[tuple[str, str], Plan] = {}

    async def perform(self, dispatch: Dispatch) -> Outcome:
        spec = dispatch.spec
        assert isinstance(spec, ChildSpec)
        invocation = self._invocation(dispatch, spec)
        if misfits := _misfits(spec, invocation.arguments):
            return failed(Reason.CHILD_PUBLISH_FAILED, f"workflow {spec.ref}: {'; '.join(misfits)}", ran=False)
        limit = None if dispatch.timeout_ms is None else dispatch.timeout_ms / 1000
        try:
            async with asyncio.timeout(limit):
                return await self._runs.perform(invocation)
        except TimeoutError:
            return failed(Reason.TIMEOUT, f"workflow {spec.ref}: timed out after {_spelt(dispatch.timeout_ms or 0)}")

    async def close(self) -> None:
        """Nothing is held: each child has been driven to its end, or stopped, by now."""

    def _invocation(self, dispatch: Dispatch, spec: ChildSpec) -> Invocation:
        arguments = spec.arguments.value if isinstance(spec.arguments, Literal) else None
        return Invocation(
            step=dispatch.step,
            unit=dispatch.unit,
            number=dispatch.number,
            ref=spec.ref,
            plan=self._plan(dispatch.step, spec),
            digest=spec.digest,
            arguments=arguments if isinstance(arguments, dict) else {},
            provenance=spec.provenance,
            grants=spec.grants,
            take_up=spec.take_up,
            hash=dispatch.hash,
            afresh=dispatch.afresh,
        )

    def _plan(self, step: str, spec: ChildSpec) -> Plan:
        """The plan in the spec, read once for all units of a step."""
        key = (step, spec.digest)
        if key not in self._plans:
            self._plans[key] = msgspec.convert(spec.plan, Plan, strict=True)
        return self._plans[key]


def _misfits(spec: ChildSpec, arguments: Mapping[str, Any]) -> list[str]:
    """What the inputs of the task in front of the child do not admit of the values that are known only now."""
    schemas: Mapping[str, Any] = spec.schemas or {}
    names = [name for name in schemas if name in arguments]
    return [fault for name in names for fault in validate(arguments[name], schemas[name], f"with.{name}")]


def _spelt(milliseconds: int) -> str:
    from flowstone.expr.duration import format_go_duration

    return format_go_duration(milliseconds * 1_000_000)
