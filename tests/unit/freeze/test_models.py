"""models.json: layers, columns, engine-backed profiles, and what is refused (akm facts 22)."""

from __future__ import annotations

import pytest

from flowstone.config.models import read_models
from flowstone.config.paths import locate
from flowstone.errors import ConfigError
from flowstone.freeze.models import Chosen, ModelMap


def layer(**aliases):
    return {"version": 1, "aliases": aliases}


def chosen(*layers, name="fast", columns=("fake",), engines=None):
    named = [(f"layer{place}", document) for place, document in enumerate(layers)]
    return ModelMap(named, "set").choose(name, columns, engines or {})


def test_a_name_that_is_no_alias_is_an_exact_model():
    assert chosen(layer(fast={"fake": "m"}), name="vendor/Some-Model") == Chosen("vendor/Some-Model")


def test_the_columns_are_asked_in_order_and_case_does_not_count():
    document = layer(Fast={"Claude": "c", "FAKE": "f"})
    assert chosen(document, columns=("fake", "claude")).model == "f"
    assert chosen(document, columns=("other", "claude")).model == "c"
    assert chosen(document, name="FAST").model == "f"


def test_a_known_alias_without_a_column_is_refused():
    with pytest.raises(ConfigError, match='"fast" has no column for fake; it has: claude') as caught:
        chosen(layer(fast={"claude": "c"}))
    assert "models.json" in (caught.value.hint or "")


def test_a_profile_brings_its_tuning():
    profile = {"model": "m", "inference": {"temperature": 0, "maxTokens": 9, "effort": "low"}}
    found = chosen(layer(fast={"fake": profile}))
    assert found == Chosen("m", {"temperature": 0, "max_tokens": 9, "reasoning_effort": "low"})


def test_objects_merge_and_all_else_replaces():
    base = layer(fast={"fake": {"model": "m", "inference": {"temperature": 1, "effort": "low"}}, "claude": "c"})
    over = layer(fast={"fake": {"inference": {"temperature": 2}}})
    assert chosen(base, over) == Chosen("m", {"temperature": 2, "reasoning_effort": "low"})
    assert chosen(base, over, columns=("claude",)).model == "c"
    assert chosen(base, layer(fast={"fake": "other"})) == Chosen("other")
    assert chosen(layer(fast={"fake": "m"}), over) == Chosen("m", {"temperature": 2})


def test_null_takes_a_column_or_an_alias_away():
    base = layer(fast={"fake": "m", "claude": "c"})
    with pytest.raises(ConfigError, match="no column"):
        chosen(base, layer(fast={"fake": None}))
    assert chosen(base, layer(fast=None)) == Chosen("fast")


def test_an_engine_lends_its_model_and_tuning():
    engines = {"big": {"kind": "llm", "model": "b", "temperature": 0.5, "maxTokens": 5}}
    profile = {"engine": "big", "inference": {"max_tokens": 7}}
    assert chosen(layer(fast={"fake": profile}), engines=engines) == Chosen("b", {"temperature": 0.5, "max_tokens": 7})
    agent = {"big": {"kind": "agent", "model": "a", "temperature": 0.5}}
    assert chosen(layer(fast={"fake": {"engine": "big"}}), engines=agent) == Chosen("a", {})


@pytest.mark.parametrize(("engines", "problem"), [({}, "is not configured"), ({"big": {"kind": "llm"}}, "no model")])
def test_an_engine_that_can_lend_nothing_is_refused(engines, problem):
    with pytest.raises(ConfigError, match=problem):
        chosen(layer(fast={"fake": {"engine": "big"}}), engines=engines)


def test_the_nearer_layer_decides_between_model_and_engine():
    engines = {"big": {"kind": "llm", "model": "b"}}
    by_engine, by_model = layer(fast={"fake": {"engine": "big"}}), layer(fast={"fake": {"model": "m"}})
    assert chosen(by_model, by_engine, engines=engines).model == "b"
    assert chosen(by_engine, by_model, engines=engines).model == "m"


@pytest.mark.parametrize(
    ("document", "problem"),
    [
        ([], "object"),
        ({"aliases": {}}, "version"),
        ({"version": 2}, "version"),
        ({"version": True}, "version"),
        ({"version": 1, "more": 1}, '"more"'),
        (layer(Fast={}, fast={}), "twice"),
        (layer(fast={"A": "x", "a": "y"}), "twice"),
        (layer(fast="m"), "object"),
        (layer(fast={"fake": 7}), "aliases.fast.fake"),
        (layer(fast={"fake": ""}), "aliases.fast.fake"),
        (layer(fast={"fake": {"model": "m", "engine": "e"}}), "both model and engine"),
        (layer(fast={"fake": {"modle": "m"}}), '"modle"'),
        (layer(fast={"fake": {"model": 5}}), "model"),
        (layer(fast={"fake": {"inference": {"heat": 1}}}), '"heat"'),
        (layer(fast={"fake": {"inference": {"temperature": "hot"}}}), "a number"),
        (layer(fast={"fake": {"inference": {"maxTokens": 1, "max_tokens": 2}}}), "twice"),
        (layer(fast={"fake": {"inference": 3}}), "inference"),
    ],
)
def test_a_wrong_file_is_named_with_the_place(document, problem):
    with pytest.raises(ConfigError) as caught:
        chosen(document)
    assert caught.value.message.startswith("layer0: ")
    assert problem in caught.value.message


def test_the_packaged_file_and_the_users_over_it(tmp_path):
    paths = locate({"HOME": str(tmp_path), "AKM_CONFIG_DIR": str(tmp_path)})
    assert ModelMap(read_models(paths), "set").choose("fast", ("claude",), {}).model == "claude-haiku-4-5"
    (tmp_path / "models.json").write_text('{"version": 1, "aliases": {"FAST": {"claude": "mine"}}}')
    models = ModelMap(read_models(paths), "set")
    assert models.choose("fast", ("claude",), {}).model == "mine"
    assert models.choose("fast", ("opencode",), {}).model == "opencode/claude-haiku-4-5"
