"""Performs approval units: waits until somebody has decided, or the time for it is over.

A decision is made by any process, at any time, through the store; so one that was made while no
driver lived is found at once by the next.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from msgspec.structs import replace

from flowstone.expr.model import Literal
from flowstone.plan.units import ApprovalSpec
from flowstone.ports.clock import Clock
from flowstone.ports.dispatcher import Dispatch
from flowstone.ports.store import Store
from flowstone.run.asking import ANSWER, Asking, last_asking, unanswered
from flowstone.run.outcome import Outcome

LOOK_S = 0.25
"""How long a decision may lie there before it is seen."""


class ApprovalDispatcher:
    """The value of an approval tells who decided, when, and why; a rejection fails the step."""

    def __init__(
        self,
        store: Store,
        clock: Clock,
        line: Callable[[str, str, str], None],
        redact: Callable[[Any], Any] = lambda value: value,
    ) -> None:
        self._store = store
        self._clock = clock
        self._line = line
        self._redact = redact

    async def perform(self, dispatch: Dispatch) -> Outcome:
        spec = dispatch.spec
        assert isinstance(spec, ApprovalSpec)
        asking = await self._asking(dispatch)
        told = False
        while (found := self._answer(dispatch.run, asking, spec)) is None:
            if not told:
                self._tell(dispatch, spec)
                told = True
            await asyncio.sleep(self._pause(asking, spec))
        told_why = self._redact(found.error)
        return replace(found, value=self._redact(found.value), error=told_why, diagnostic=told_why)

    async def close(self) -> None:
        """Nothing is held."""

    async def _asking(self, dispatch: Dispatch) -> Asking:
        """What is asked; a driver may hand an attempt out a moment before its start is durable."""
        while (asking := last_asking(self._store.read(dispatch.run), dispatch.step)) is None:
            await asyncio.sleep(LOOK_S)
        return asking

    def _answer(self, run: str, asking: Asking, spec: ApprovalSpec) -> Outcome | None:
        found = self._store.outcome(run, asking.unit, asking.number, ANSWER)
        if found is None and self._left(asking, spec) <= 0:
            limit = _spelt(spec.timeout_ms or 0)
            outcome = unanswered(limit, self._clock.now_ms(), approved=spec.approve_on_timeout)
            found = self._store.record_outcome(run, asking.unit, asking.number, ANSWER, outcome)
        return found

    def _pause(self, asking: Asking, spec: ApprovalSpec) -> float:
        return min(LOOK_S, max(0.001, self._left(asking, spec)))

    def _left(self, asking: Asking, spec: ApprovalSpec) -> float:
        """Seconds in which somebody may still decide."""
        if spec.timeout_ms is None:
            return LOOK_S
        return (asking.since + spec.timeout_ms - self._clock.now_ms()) / 1000

    def _tell(self, dispatch: Dispatch, spec: ApprovalSpec) -> None:
        prompt = spec.prompt.value if isinstance(spec.prompt, Literal) else ""
        for text in str(self._redact(f"waits for approval: {prompt}")).splitlines():
            self._line(dispatch.step, dispatch.unit, text)
        step = spec.guards or dispatch.step
        self._line(dispatch.step, dispatch.unit, f"decide with: approve {dispatch.run} {step}   (or reject)")


def _spelt(milliseconds: int) -> str:
    from flowstone.expr.duration import format_go_duration

    return format_go_duration(milliseconds * 1_000_000)
