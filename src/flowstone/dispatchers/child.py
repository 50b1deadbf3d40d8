"""Performs child units: has a nested workflow run and makes its end an outcome of the step."""

from __future__ import annotations

import asyncio

import msgspec

from flowstone.expr.model import Literal
from flowstone.plan.model import Plan
from flowstone.plan.units import ChildSpec
from flowstone.ports.children import ChildEnd, ChildRuns, Invocation
from flowstone.ports.dispatcher import Dispatch
from flowstone.run.events import RunStatus
from flowstone.run.outcome import Outcome, Reason, failed


class ChildDispatcher:
    """The outputs that the child declares are the value of the unit; its first error is the unit's."""

    def __init__(self, runs: ChildRuns) -> None:
        self._runs = runs
        self._plans: dict[tuple[str, str], Plan] = {}

    async def perform(self, dispatch: Dispatch) -> Outcome:
        spec = dispatch.spec
        assert isinstance(spec, ChildSpec)
        limit = None if dispatch.timeout_ms is None else dispatch.timeout_ms / 1000
        try:
            async with asyncio.timeout(limit):
                end = await self._runs.perform(self._invocation(dispatch, spec))
        except TimeoutError:
            return failed(Reason.TIMEOUT, f"workflow {spec.ref}: timed out after {_spelt(dispatch.timeout_ms or 0)}")
        return _outcome(spec.ref, end)

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
        )

    def _plan(self, step: str, spec: ChildSpec) -> Plan:
        """The plan in the spec, read once for all units of a step."""
        key = (step, spec.digest)
        if key not in self._plans:
            self._plans[key] = msgspec.convert(spec.plan, Plan, strict=True)
        return self._plans[key]


def _outcome(ref: str, end: ChildEnd) -> Outcome:
    match end.status:
        case RunStatus.SUCCEEDED:
            return Outcome(value=end.outputs if isinstance(end.outputs, dict) else {}, child_run=end.run)
        case RunStatus.FAILED:
            reason = Reason.CHILD_FAILED
        case RunStatus.ABANDONED if end.run is None:
            reason = Reason.CHILD_PUBLISH_FAILED
        case RunStatus.ACTIVE:
            reason = Reason.CHILD_BUSY
        case _:
            reason = Reason.CHILD_BLOCKED
    error = f"workflow {ref}: {end.error or f'ended {end.status}'}"
    ran = reason in (Reason.CHILD_FAILED, Reason.CHILD_BLOCKED)
    return Outcome(reason=reason, error=error, diagnostic=error, ran=ran, child_run=end.run)


def _spelt(milliseconds: int) -> str:
    from flowstone.expr.duration import format_go_duration

    return format_go_duration(milliseconds * 1_000_000)
