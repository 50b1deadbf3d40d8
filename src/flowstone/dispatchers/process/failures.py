"""The one way to say, inside this package, that a command cannot be started: caught by the dispatcher."""

from __future__ import annotations

from flowstone.run.outcome import Reason


class CannotStart(Exception):
    """Nothing was spawned; becomes a failed outcome with this reason and text."""

    def __init__(self, reason: Reason, text: str) -> None:
        super().__init__(text)
        self.reason = reason
        self.text = text
