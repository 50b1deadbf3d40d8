"""Performs sleep units: waits for a duration and says how long, as the language spells it."""

from __future__ import annotations

import asyncio

from flowstone.expr.model import Literal
from flowstone.plan.units import SleepSpec
from flowstone.ports.dispatcher import Dispatch
from flowstone.run.outcome import Outcome, Reason, failed

_NS_PER_MS = 1_000_000


class SleepDispatcher:
    """The result of a sleep is `{"slept": "<duration>"}`; it ends at once when its task is cancelled."""

    async def perform(self, dispatch: Dispatch) -> Outcome:
        from flowstone.expr.duration import format_go_duration

        spec = dispatch.spec
        assert isinstance(spec, SleepSpec)
        try:
            duration = _nanoseconds(spec)
        except ValueError as error:
            return failed(Reason.DISPATCH_ERROR, f"sleep: with.duration: {error}", ran=False)
        limit = None if dispatch.timeout_ms is None else dispatch.timeout_ms * _NS_PER_MS
        if limit is not None and duration > limit:
            await asyncio.sleep(limit / 1e9)
            return failed(Reason.TIMEOUT, f"sleep: timeout after {format_go_duration(limit)}")
        await asyncio.sleep(duration / 1e9)
        return Outcome(value={"slept": format_go_duration(duration)})

    async def close(self) -> None:
        """Nothing is held."""


def _nanoseconds(spec: SleepSpec) -> int:
    """The duration, from text such as `1m30s` or from a number of milliseconds; ValueError if none."""
    from flowstone.expr.duration import parse_go_duration

    value = spec.duration.value if isinstance(spec.duration, Literal) else None
    if isinstance(value, dict):
        value = value.get("duration")
    duration: int
    if isinstance(value, str):
        duration = parse_go_duration(value)
    elif isinstance(value, (int, float)) and not isinstance(value, bool):
        duration = round(value * _NS_PER_MS)
    else:
        raise ValueError("must be a duration such as 30s")
    if duration < 0:
        raise ValueError("must not be negative")
    return duration
