"""From the file to the settings."""

import json

import pytest

from flowstone.config.paths import locate
from flowstone.config.rules import gaps
from flowstone.config.settings import load_settings
from flowstone.errors import ConfigError


def load(tmp_path, document, cores=8, **variables):
    (tmp_path / "config.json").write_text(json.dumps(document))
    env = {"HOME": str(tmp_path), "AKM_CONFIG_DIR": str(tmp_path), **variables}
    return load_settings(locate(env), cores)


@pytest.mark.parametrize(("cores", "cap"), [(1, 1), (2, 1), (3, 1), (8, 6), (18, 16), (64, 16)])
def test_the_host_cap_follows_the_cores(tmp_path, cores, cap):
    settings = load(tmp_path, {}, cores)
    assert settings.host_concurrency == cap
    assert settings.engines.max_concurrency == cap
    assert settings.engines.map_width == 4


def test_a_configured_host_cap_replaces_it_everywhere(tmp_path):
    settings = load(tmp_path, {"workflow": {"hostConcurrency": 32}}, 2)
    assert (settings.host_concurrency, settings.engines.max_concurrency) == (32, 32)


def test_numbers_are_clamped(tmp_path):
    workflow = {"maxConcurrency": 500, "defaultMapConcurrency": 90}
    settings = load(tmp_path, {"workflow": workflow})
    assert (settings.engines.max_concurrency, settings.engines.map_width) == (64, 64)


def test_engines_are_handed_on(tmp_path):
    engines = {"fast": {"kind": "llm", "endpoint": "http://h/chat/completions", "model": "m"}}
    settings = load(
        tmp_path,
        {"engines": engines, "defaults": {"engine": "fast"}, "workflow": {"judgeEngine": "fast"}},
    )
    assert settings.engines.engines == engines
    assert settings.engines.default_engine == settings.engines.judge_engine == "fast"


def test_all_faults_are_named_at_once(tmp_path):
    with pytest.raises(ConfigError) as caught:
        load(tmp_path, {"workflow": {"hostConcurrency": 0}, "engines": {"X": {}}, "modelAliases": {}})
    text = str(caught.value)
    assert caught.value.code == "INVALID_CONFIG_FILE"
    assert "workflow.hostConcurrency" in text
    assert "engines.X" in text
    assert "models.json" in text


@pytest.mark.parametrize("document", [{"engines": []}, {"workflow": 1}, {"bundles": {"a": 1}}, {"defaults": []}])
def test_wrong_shapes_are_errors_with_a_place(tmp_path, document):
    with pytest.raises(ConfigError, match="must be an object"):
        load(tmp_path, document)


def test_what_an_engine_lacks():
    assert gaps({"kind": "llm", "model": "m"}) == ["endpoint"]
    assert gaps({"kind": "agent"}) == ["platform"]
    assert gaps({}) == ["kind"]


def test_bundles_stand_in_order_of_priority(tmp_path):
    document = {
        "bundles": {
            "far": {"git": "somewhere"},
            "team": {"path": "team"},
            "mine": {"path": "~/mine", "components": {"main": {"root": "assets"}}},
        },
        "defaultBundle": "mine",
    }
    settings = load(tmp_path, document)
    assert [(b.name, b.root) for b in settings.bundles] == [
        ("mine", str(tmp_path / "mine" / "assets")),
        ("team", str(tmp_path / "team")),
    ]


def test_the_variable_names_the_first_bundle(tmp_path):
    document = {"bundles": {"team": {"path": "team"}}, "defaultBundle": "team"}
    settings = load(tmp_path, document, AKM_BUNDLE_DIR=str(tmp_path / "bundle"))
    assert [b.name for b in settings.bundles] == ["bundle", "team"]
    known = load(tmp_path, document, AKM_BUNDLE_DIR=str(tmp_path / "team"))
    assert [b.name for b in known.bundles] == ["team"]


def test_without_any_bundle_the_home_folder_has_one(tmp_path):
    assert load(tmp_path, {}).bundle.root == str(tmp_path / "akm")
