"""What models used and what that costs: outcomes summed up, and the warnings before a budget is spent. Pure.

A price holds for a model by name; what has no price, or was not told in its two parts, costs an
unknown amount and never 0.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec

from flowstone.plan.bounds import BUDGET_ALARM_PERCENT
from flowstone.plan.model import Budget, Price
from flowstone.plan.units import AgentSpec, AnySpec, LlmSpec
from flowstone.run.outcome import Outcome

PRICED_TOKENS = 1_000_000
"""A price is for so many tokens."""


class Used(msgspec.Struct):
    """Tokens of several calls; `whole` are those that were told without their two parts."""

    tokens: int = 0
    tokens_in: int = 0
    tokens_out: int = 0
    whole: int = 0

    def add(self, outcome: Outcome) -> None:
        tokens = outcome.tokens or 0
        self.tokens += tokens
        if outcome.tokens_in is None or outcome.tokens_out is None:
            self.whole += tokens
        else:
            self.tokens_in += outcome.tokens_in
            self.tokens_out += outcome.tokens_out


class Usage(msgspec.Struct, frozen=True):
    """What was used, and its price in US dollars (None: not known, `partial`: of a part of it only)."""

    tokens: int
    tokens_in: int
    tokens_out: int
    dollars: float | None = None
    partial: bool = False


class BudgetWarning(msgspec.Struct, frozen=True):
    """A run came near a ceiling of its budget: `used` of `limit` when it was noticed, at `at`."""

    ceiling: str
    used: int
    limit: int
    at: int

    @property
    def text(self) -> str:
        what = {"max_units": "units dispatched", "max_tokens": "tokens used"}[self.ceiling]
        percent = self.used * 100 // self.limit
        return f"budget: {self.used:,} of {self.limit:,} {what} ({percent} % of {self.ceiling})"


class Alarms:
    """Which ceilings of a budget have not been warned about; each warns once in the life of a run."""

    __slots__ = ("_left", "given")

    def __init__(self, budget: Budget) -> None:
        limits = {"max_units": budget.max_units, "max_tokens": budget.max_tokens}
        self._left = {name: limit for name, limit in limits.items() if limit is not None}
        self.given: list[BudgetWarning] = []

    def note(self, ceiling: str, used: int, at: int) -> None:
        """Take a new figure in; it warns when it has come near the ceiling for the first time."""
        limit = self._left.get(ceiling)
        if limit is not None and used * 100 >= limit * BUDGET_ALARM_PERCENT:
            del self._left[ceiling]
            self.given.append(BudgetWarning(ceiling, used, limit, at))


def usage_of(used: Used, spec: AnySpec | None, prices: Iterable[Price]) -> Usage | None:
    """What calls to one spec's model used; None where nothing is known of any."""
    if used.tokens == 0:
        return None
    price = _price(spec, prices)
    if price is None or used.whole == used.tokens:
        return Usage(used.tokens, used.tokens_in, used.tokens_out)
    dollars = (used.tokens_in * price.tokens_in + used.tokens_out * price.tokens_out) / PRICED_TOKENS
    return Usage(used.tokens, used.tokens_in, used.tokens_out, dollars, partial=used.whole > 0)


def total(parts: Iterable[Usage | None]) -> Usage | None:
    """The sum of several; its price is partial where that of a part is unknown."""
    known = [part for part in parts if part is not None]
    if not known:
        return None
    priced = [part.dollars for part in known if part.dollars is not None]
    return Usage(
        sum(part.tokens for part in known),
        sum(part.tokens_in for part in known),
        sum(part.tokens_out for part in known),
        sum(priced) if priced else None,
        partial=bool(priced) and any(part.partial or part.dollars is None for part in known),
    )


def models_of(spec: AnySpec | None) -> Iterator[str]:
    """The name of the model that a frozen spec asks, where it is known."""
    if isinstance(spec, (LlmSpec, AgentSpec)) and spec.model is not None:
        yield spec.model


def _price(spec: AnySpec | None, prices: Iterable[Price]) -> Price | None:
    names = list(models_of(spec))
    return next((price for price in prices if price.model in names), None)
