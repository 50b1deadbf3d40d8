"""A clock that stands still until a test moves it, and whose ids and chance are known beforehand."""

from __future__ import annotations

EPOCH_MS = 1_700_000_000_000


class FakeClock:
    """Implements `ports.clock.Clock`. Ids count up; `jitter_value` is what `jitter` answers."""

    def __init__(self, now: int = EPOCH_MS, jitter_value: float = 0.0) -> None:
        self._now = now
        self._ids = 0
        self.jitter_value = jitter_value

    def now_ms(self) -> int:
        return self._now

    def advance(self, milliseconds: int) -> int:
        """Let time pass; returns the new time."""
        if milliseconds < 0:
            raise ValueError("time does not go backwards")
        self._now += milliseconds
        return self._now

    def new_id(self) -> str:
        """`00000001-0000-7000-8000-000000000000` and so on: each differs in its first characters."""
        self._ids += 1
        return f"{self._ids:08x}-0000-7000-8000-000000000000"

    def jitter(self) -> float:
        return self.jitter_value
