"""The real clock: milliseconds that never go backwards, ids that grow with time, chance for jitter."""

from __future__ import annotations

import os
import time


class SystemClock:
    """Implements `ports.clock.Clock`. Made once a process."""

    def __init__(self) -> None:
        self._now = 0
        self._now_ns = 0
        self._last_id = 0

    def now_ms(self) -> int:
        """Milliseconds since the epoch; when the system's clock is set back, the last answer again."""
        self._now = max(self._now, time.time_ns() // 1_000_000)
        return self._now

    def now_ns(self) -> int:
        """Nanoseconds since the epoch, for ids that show when a run began."""
        return time.time_ns()

    def new_id(self) -> str:
        """A UUID of version 7: 48 bits of milliseconds, then chance; each above the one before."""
        chance = int.from_bytes(os.urandom(10), "big") >> 6
        self._last_id = max((self.now_ms() << 74) | chance, self._last_id + 1)
        return uuid7_text(self._last_id >> 74, self._last_id & ((1 << 74) - 1))

    def jitter(self) -> float:
        """A number from 0 up to 1."""
        return int.from_bytes(os.urandom(7), "big") / (1 << 56)


def uuid7_text(milliseconds: int, chance: int) -> str:
    """Spell a UUID of version 7 from its time and 74 bits of chance."""
    high = chance >> 62
    low = chance & ((1 << 62) - 1)
    number = (milliseconds << 80) | (7 << 76) | (high << 64) | (2 << 62) | low
    digits = f"{number:032x}"
    return f"{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:]}"
