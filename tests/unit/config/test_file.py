"""Reading, changing and writing config.json."""

import json
import os
import stat

import pytest

from flowstone.config.file import get_value, read_config, set_value, unset_value, update_config, write_config
from flowstone.errors import ConfigError, FlowstoneError, InputError, UsageError


def test_a_missing_file_is_an_empty_document(tmp_path):
    assert read_config(str(tmp_path / "none.json")) == {}


def test_invalid_json_names_its_place(tmp_path):
    path = tmp_path / "config.json"
    path.write_text('{\n  "a": 1,\n  "b" 2\n}')
    with pytest.raises(ConfigError) as caught:
        read_config(str(path))
    assert caught.value.code == "INVALID_CONFIG_FILE"
    assert str(caught.value).startswith(f"{path}:3:7: ")


@pytest.mark.parametrize("text", ["[]", "1", '"a"', '{"a": NaN}', '{"a": 1e999}', "", "{" * 5000])
def test_what_is_no_json_object_is_refused(tmp_path, text):
    path = tmp_path / "config.json"
    path.write_text(text)
    with pytest.raises(ConfigError):
        read_config(str(path))


def test_unknown_keys_keep_their_values_and_order(tmp_path):
    path = tmp_path / "config.json"
    document = {"zeta": {"b": 1.0, "a": [1, "x"]}, "configVersion": "0.9.0", "alpha": None}
    path.write_text("\ufeff" + json.dumps(document), encoding="utf-8")
    update_config(str(path), lambda old: set_value(old, "workflow.maxConcurrency", "3"))
    after = json.loads(path.read_text())
    assert list(after) == ["zeta", "configVersion", "alpha", "workflow"]
    assert list(after["zeta"]) == ["b", "a"]
    assert repr(after["zeta"]["b"]) == "1.0"
    assert after["workflow"] == {"maxConcurrency": 3}


def test_writing_keeps_the_mode_and_follows_a_symlink(tmp_path):
    real = tmp_path / "real.json"
    real.write_text("{}")
    real.chmod(0o640)
    link = tmp_path / "config.json"
    link.symlink_to("real.json")
    write_config(str(link), {"a": 1})
    assert link.is_symlink()
    assert json.loads(real.read_text()) == {"a": 1}
    assert stat.S_IMODE(real.stat().st_mode) == 0o640
    assert sorted(os.listdir(tmp_path)) == ["config.json", "real.json"]


def test_a_new_file_is_for_its_owner_only(tmp_path):
    path = tmp_path / "deep" / "config.json"
    write_config(str(path), {})
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_refused_change_writes_nothing(tmp_path):
    path = tmp_path / "config.json"
    path.write_text('{"keep": 1}')
    with pytest.raises(InputError):
        update_config(str(path), lambda old: set_value(old, "workflow.hostConcurrency", "65"))
    assert path.read_text() == '{"keep": 1}'


@pytest.mark.parametrize(
    ("key", "text", "value"),
    [
        ("workflow.defaultMapConcurrency", "2", 2),
        ("workflow.judgeEngine", "fast", "fast"),
        ("engines.fast.supportsJsonSchema", "true", True),
        ("engines.fast.timeoutMs", "null", None),
        ("engines.fast.temperature", "0.5", 0.5),
        ("engines.fast.args", '["-x", "1"]', ["-x", "1"]),
        ("engines.fast.model", "123", "123"),
        ("somebody.elses", "12", 12),
        ("somebody.elses", "plain text", "plain text"),
        ("execution.allowedTools", "[]", []),
    ],
)
def test_texts_are_read_by_the_type_of_their_key(key, text, value):
    document = set_value({}, key, text)
    assert get_value(document, key) == value
    assert type(get_value(document, key)) is type(value)
    assert document["configVersion"] == "0.9.0"


@pytest.mark.parametrize(
    ("key", "text", "part"),
    [
        ("workflow.hostConcurrency", "0", "from 1 to 64"),
        ("workflow.hostConcurrency", "65", "from 1 to 64"),
        ("workflow.hostConcurrency", "many", "number"),
        ("workflow.maxConcurrency", "-1", "from 1 up"),
        ("workflow.maxConcurrency", "1.5", "whole number"),
        ("workflow.maxConcurrency", "true", "whole number"),
        ("workflow.defaultMapConcurrency", "0", "from 1 up"),
        ("workflow.judgeEngine", "Big Judge", "name of an engine"),
        ("engines.Big.kind", "llm", "not an engine name"),
        ("engines.akm-x.kind", "llm", "reserved"),
        ("engines." + "a" * 64 + ".kind", "llm", "at most 63"),
        ("engines.x.kind", "robot", "llm, agent"),
        ("engines.x.endpoint", "ftp://h/chat/completions", "http"),
        ("engines.x.endpoint", "http://h/v1", "/chat/completions"),
        ("engines.x.endpoint", "http://me:pw@h/chat/completions", "user name"),
        ("engines.x.endpoint", "http://h/chat/completions?x=1", "query"),
        ("engines.x.endpoint", "http://h/chat/completions#x", "fragment"),
        ("engines.x.apiKey", "sk-123456", "environment variable"),
        ("engines.x.apiKey", "$A-B", "environment variable"),
        ("engines.x.timeoutMs", "0", "or null"),
        ("engines.x.maxTokens", "0", "from 1 up"),
        ("engines.x.platform", "hal", "opencode"),
        ("engines.x.args", "-x", "JSON"),
        ("engines.x.args", "[1]", "list of texts"),
        ("engines.x.llmEngine", "y", "opencode-sdk only"),
        ("engines.x.extraParams", "[]", "object"),
        ("engines", "[]", "object"),
        ("modelAliases", "{}", "models.json"),
        ("a..b", "1", "not a config key"),
    ],
)
def test_what_a_key_may_not_hold_is_refused(key, text, part):
    with pytest.raises(FlowstoneError) as caught:
        set_value({}, key, text)
    assert part in str(caught.value)
    assert "sk-123456" not in str(caught.value)


@pytest.mark.parametrize("key", ["$MY_KEY", "${MY_KEY}"])
def test_a_key_names_its_variable(key):
    assert get_value(set_value({}, "engines.x.apiKey", key), "engines.x.apiKey") == key


def test_a_fault_elsewhere_does_not_stop_a_repair():
    broken = {"workflow": {"hostConcurrency": 0, "maxConcurrency": 0}}
    mended = set_value(broken, "workflow.hostConcurrency", "8")
    assert mended == {"workflow": {"hostConcurrency": 8, "maxConcurrency": 0}, "configVersion": "0.9.0"}


def test_set_below_a_scalar_is_refused():
    with pytest.raises(InputError, match='"a" is no object'):
        set_value({"a": 1}, "a.b", "2")


def test_get_of_what_is_not_set():
    assert get_value({}, "workflow.maxConcurrency") is None
    assert get_value({"l": ["x", "y"]}, "l.1") == "y"
    with pytest.raises(UsageError) as caught:
        get_value({}, "workflow.maxConcurency")
    assert "workflow.maxConcurrency" in caught.value.hint


def test_unset_takes_one_key_and_leaves_the_rest():
    before = {"workflow": {"maxConcurrency": 1, "judgeEngine": "j"}}
    assert unset_value(before, "workflow.maxConcurrency") == {"workflow": {"judgeEngine": "j"}}
    assert before["workflow"]["maxConcurrency"] == 1
    with pytest.raises(UsageError):
        unset_value(before, "workflow.hostConcurrency")
