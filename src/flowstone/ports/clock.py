"""Time and chance, which the pure core only gets as values."""

from __future__ import annotations

from typing import Protocol


class Clock(Protocol):
    def now_ms(self) -> int:
        """Milliseconds since the epoch; it never goes backwards within a process."""

    def new_id(self) -> str:
        """A fresh run id: a UUID in text form, growing with time (version 7)."""

    def jitter(self) -> float:
        """A number from 0 up to 1, for spreading delays."""
