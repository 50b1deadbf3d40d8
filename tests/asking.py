"""A bench whose approvals are real: a step, a question, and a step behind it. All else is scripted."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from flowstone.dispatchers.approval import ApprovalDispatcher
from flowstone.expr.model import Literal
from flowstone.plan.model import Plan, Single, Unit
from flowstone.plan.units import ApprovalSpec
from flowstone.run.asking import ANSWER, answer, last_asking
from flowstone.run.outcome import Outcome
from flowstone.testing.crashing_store import Crash, CrashingStore, When
from flowstone.testing.plans import dag, solo
from tests.driving import RUN, Bench


def asking_plan(**spec: Any) -> Plan:
    question = replace(solo("ok", needs=("a",)), action=Single(Unit(ApprovalSpec(Literal("Go on?"), **spec))))
    return dag(solo("a"), question, solo("b", needs=("ok",)))


class AskingBench(Bench):
    """`told` are the lines that were shown; `answers_at_once` has somebody answer as soon as a question is shown."""

    def __init__(self, store: Any = None, *, answers_at_once: bool = False, **spec: Any) -> None:
        super().__init__(asking_plan(**spec), store=store)
        self.told: list[str] = []
        self._answers = answers_at_once

    def dispatcher_of(self, spec: Any) -> Any:
        if isinstance(spec, ApprovalSpec):
            return ApprovalDispatcher(self.store, self.clock, self._line, self.redact)
        return super().dispatcher_of(spec)

    def _line(self, step: str, unit: str, text: str) -> None:
        self.told.append(text)
        if self._answers:
            self.answer()

    def answer(self, *, approved: bool = True, at: int = 0, note: str | None = None) -> Outcome:
        """Somebody answers the question that is asked now; returns the answer that stands."""
        asking = last_asking(self.store.read(RUN), "ok")
        assert asking is not None
        outcome = answer(approved=approved, by="ada", at=at, note=note)
        return self.store.record_outcome(RUN, asking.unit, asking.number, ANSWER, outcome)

    def die_while_asking(self, *, append: int = 2, **options: Any) -> None:
        """A driver that dies as soon as the question is durable, before anybody has answered."""
        with pytest.raises(Crash):
            self.drive(store=CrashingStore(self.store, append, When.AFTER), **options)
