"""Sleep units: how long, how it is told, and what ends one early."""

from __future__ import annotations

import asyncio
import time

import pytest

from flowstone.dispatchers.sleep import SleepDispatcher
from flowstone.expr.model import Literal
from flowstone.plan.units import SleepSpec
from flowstone.ports.dispatcher import Dispatch
from flowstone.run.outcome import Outcome, Reason


def slept(duration: object, timeout_ms: int | None = None) -> Outcome:
    spec = SleepSpec(Literal(duration))
    return asyncio.run(SleepDispatcher().perform(Dispatch("r", "s", "s:solo", 1, 0, "h", spec, timeout_ms=timeout_ms)))


@pytest.mark.parametrize(("duration", "told"), [("50ms", "50ms"), (1, "1ms"), ("0s", "0s")])
def test_the_result_tells_the_duration(duration: object, told: str) -> None:
    outcome = slept(duration)
    assert outcome.ok
    assert outcome.value == {"slept": told}


def test_the_timeout_holds() -> None:
    started = time.monotonic()
    outcome = slept("20s", timeout_ms=100)
    assert outcome.reason is Reason.TIMEOUT
    assert "timeout after 100ms" in (outcome.error or "")
    assert time.monotonic() - started < 2


@pytest.mark.parametrize("duration", ["soon", "-1s", None, True, ""])
def test_what_is_no_duration_fails_and_never_ran(duration: object) -> None:
    outcome = slept(duration)
    assert outcome.reason is Reason.DISPATCH_ERROR
    assert not outcome.ran
    assert "with.duration" in (outcome.error or "")


def test_a_cancellation_ends_it_at_once() -> None:
    async def main() -> None:
        dispatcher = SleepDispatcher()
        dispatch = Dispatch("r", "s", "s:solo", 1, 0, "h", SleepSpec(Literal("20s")))
        task = asyncio.ensure_future(dispatcher.perform(dispatch))
        await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await dispatcher.close()

    started = time.monotonic()
    asyncio.run(main())
    assert time.monotonic() - started < 2
