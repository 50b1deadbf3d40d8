"""The `prices` of models.json in layers → the prices of the models that a plan asks, frozen with it.

A price is in US dollars for a million tokens. A model without one costs an unknown amount, so there
is nothing to guess here: what is wrong is refused, what is missing stays missing.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence

from flowstone.errors import ConfigError
from flowstone.plan.model import Price
from flowstone.values import Json

_KEYS = ("input", "output")
Prices = dict[str, tuple[float, float] | None]


class PriceList:
    """The prices of all layers, the packaged one first; models by name, without regard to case."""

    def __init__(self, layers: Sequence[tuple[str, Json]]) -> None:
        """`layers` are documents that are known to be objects, with the names of their files."""
        self._prices: Prices = {}
        for path, document in layers:
            if isinstance(document, dict):
                self._prices |= _layer(path, document.get("prices", {}))

    def of(self, models: Iterable[str]) -> tuple[Price, ...]:
        """The known prices of some models, by name."""
        found = ((model, self._prices.get(model.lower())) for model in sorted(set(models)))
        return tuple(Price(model, *price) for model, price in found if price is not None)


def _layer(path: str, prices: Json) -> Prices:
    """The prices of one document; null takes away what a layer below it says."""
    if not isinstance(prices, dict):
        raise _wrong(path, "prices must be an object of models")
    found: Prices = {}
    for model, price in prices.items():
        name = model.strip().lower()
        if not name:
            raise _wrong(path, "prices has a blank name")
        if name in found:
            raise _wrong(path, f'prices has "{model}" twice: names are compared without regard to case')
        found[name] = None if price is None else _price(path, f"prices.{model}", price)
    return found


def _price(path: str, place: str, price: Json) -> tuple[float, float]:
    if not isinstance(price, Mapping) or sorted(price) != sorted(_KEYS):
        raise _wrong(path, f"{place} must be an object with exactly {' and '.join(_KEYS)}")
    read, written = (_dollars(path, f"{place}.{key}", price[key]) for key in _KEYS)
    return read, written


def _dollars(path: str, place: str, value: Json) -> float:
    number = isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)
    if not number or value < 0:
        raise _wrong(path, f"{place} must be a number from 0 up: US dollars for a million tokens")
    return float(value)


def _wrong(path: str, message: str) -> ConfigError:
    return ConfigError(f"{path}: {message}.")
