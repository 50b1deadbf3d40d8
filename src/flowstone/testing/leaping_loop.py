"""An event loop whose time is a `FakeClock`: when nothing is left to do, the clock leaps to the next timer."""

from __future__ import annotations

import asyncio
import math
import selectors
from typing import Any

from flowstone.testing.clock import FakeClock


class Deadlock(Exception):
    """Nothing runs and no timer is set, so that the loop would wait for ever."""


class LeapingLoop(asyncio.SelectorEventLoop):
    """Runs what waits for time only (no processes, no sockets) without waiting."""

    def __init__(self, clock: FakeClock) -> None:
        self._leaping = clock
        self._start = clock.now_ms()
        super().__init__(_LeapingSelector(clock))

    def time(self) -> float:
        return (self._leaping.now_ms() - self._start) / 1000  # small, so that a nanosecond more is more


class _LeapingSelector(selectors.DefaultSelector):
    def __init__(self, clock: FakeClock) -> None:
        super().__init__()
        self._clock = clock

    def select(self, timeout: float | None = None) -> list[Any]:
        ready: list[Any] = super().select(0)
        if ready or timeout == 0:
            return ready
        if timeout is None:
            raise Deadlock("nothing runs and no timer is set")
        self._clock.advance(max(1, math.ceil(timeout * 1000)))
        return []
