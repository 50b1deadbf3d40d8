"""The one way to say, inside this package, that a command cannot be started: caught by the dispatcher."""

from __future__ import annotations

from flowstone.redaction import Redactor
from flowstone.run.outcome import Reason


class CannotStart(Exception):
    """Nothing was spawned; becomes a failed outcome with this reason and text.

    `of_step` tells that every unit of the step would fail in the same way.
    """

    def __init__(self, reason: Reason, text: str, *, of_step: bool = False) -> None:
        super().__init__(text)
        self.reason = reason
        self.text = text
        self.of_step = of_step

    def redacted(self, redactor: Redactor) -> CannotStart:
        return CannotStart(self.reason, redactor.text(self.text), of_step=self.of_step)
