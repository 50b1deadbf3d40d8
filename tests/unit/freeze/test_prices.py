"""The prices of models.json: layers, names, and what is refused."""

from __future__ import annotations

import pytest

from flowstone.errors import ConfigError
from flowstone.freeze.frozen import freeze
from flowstone.freeze.models import ModelMap
from flowstone.freeze.prices import PriceList
from flowstone.plan.codec import decode_plan, encode_plan
from flowstone.plan.model import Price, Unit
from flowstone.plan.units import PromptTarget
from flowstone.ports.catalog import EngineConfig
from flowstone.testing.plans import solo, spine


def layer(**prices):
    return {"version": 1, "prices": prices}


def prices(*layers, models=("m",)):
    return PriceList([(f"layer{place}", document) for place, document in enumerate(layers)]).of(models)


def test_a_price_is_found_by_the_name_of_the_model_whatever_its_case():
    document = {"version": 1, "prices": {"Vendor/M": {"input": 3, "output": 15.5}}}
    assert prices(document, models=["vendor/M", "other"]) == (Price("vendor/M", 3.0, 15.5),)


def test_the_users_price_goes_before_the_packaged_one_and_null_takes_it_away():
    base = layer(m={"input": 1, "output": 2}, n={"input": 3, "output": 4})
    assert prices(base, layer(m={"input": 5, "output": 6}), models=("m", "n")) == (
        Price("m", 5, 6),
        Price("n", 3, 4),
    )
    assert prices(base, layer(M=None)) == ()


@pytest.mark.parametrize(
    ("bad", "said"),
    [
        ([], "prices must be an object"),
        ({"m": 3}, "prices.m must be an object with exactly input and output"),
        ({"m": {"input": 3}}, "exactly input and output"),
        ({"m": {"input": 3, "output": 4, "cached": 1}}, "exactly input and output"),
        ({"m": {"input": -1, "output": 4}}, "prices.m.input must be a number from 0 up"),
        ({"m": {"input": True, "output": 4}}, "prices.m.input must be a number"),
        ({"m": {"input": 1, "output": "4"}}, "prices.m.output must be a number"),
        ({"m": None, "M": None}, "twice"),
        ({" ": None}, "blank name"),
    ],
)
def test_what_is_no_price_is_refused_with_its_place(bad, said):
    with pytest.raises(ConfigError, match=said):
        prices({"version": 1, "prices": bad})


def test_aliases_and_prices_stand_in_one_file():
    document = {"version": 1, "aliases": {"fast": {"e": "m"}}, "prices": {"m": {"input": 1, "output": 1}}}
    assert ModelMap([("f", document)], "set").choose("fast", ("e",), {}).model == "m"


def test_a_plan_freezes_the_prices_of_the_models_that_it_asks_and_no_others():
    engine = {"kind": "llm", "endpoint": "http://127.0.0.1:1/v1/chat/completions", "model": "m"}
    document = layer(m={"input": 1, "output": 2}, n={"input": 3, "output": 4})
    config = EngineConfig(engines={"e": engine}, default_engine="e", models=(("f", document),))
    plan = freeze(spine(solo("a", unit=Unit(PromptTarget(content="do")))), config).plan
    assert plan.prices == (Price("m", 1.0, 2.0),)
    assert decode_plan(encode_plan(plan)).prices == plan.prices
