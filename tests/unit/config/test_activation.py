"""Which schedules run here, kept beside the configuration; and PATH in a scheduler's context."""

from __future__ import annotations

import json

import pytest

from flowstone.config.activation import ConfigActivation
from flowstone.config.environment import widened
from flowstone.errors import ConfigError


@pytest.fixture
def path(tmp_path):
    return tmp_path / "config.json"


def test_refs_come_and_go_and_the_rest_stays(path):
    path.write_text('{"x": 1, "scheduler": {"backend": "systemd"}}')
    activation = ConfigActivation(str(path))
    assert activation.enabled() == ()
    assert activation.change(lambda refs: (*refs, "b//tasks/a", "b//tasks/a")) == ("b//tasks/a",)
    activation.change(lambda refs: (*refs, "b//workflows/w"))
    assert activation.enabled() == ("b//tasks/a", "b//workflows/w")
    activation.change(lambda refs: refs[1:])
    document = json.loads(path.read_text())
    assert (document["x"], document["scheduler"]) == (1, {"backend": "systemd", "enabled": ["b//workflows/w"]})


def test_nothing_is_written_where_nothing_changes(path):
    assert ConfigActivation(str(path)).change(lambda refs: refs) == ()
    assert not path.exists()


@pytest.mark.parametrize(
    "text", ['{"scheduler": {"enabled": "a"}}', '{"scheduler": []}', '{"scheduler": {"backend": "at"}}']
)
def test_what_the_configuration_may_not_hold(path, text):
    path.write_text(text)
    with pytest.raises(ConfigError):
        ConfigActivation(str(path)).enabled()


def test_path_is_widened_in_a_schedulers_context_only(tmp_path):
    (tmp_path / ".local/bin").mkdir(parents=True)
    own = {"HOME": str(tmp_path), "PATH": "/usr/bin:/bin"}
    assert widened(own) is own
    for source in ("schedule", "cron", "Task"):
        path = widened({**own, "AKM_EVENT_SOURCE": source})["PATH"].split(":")
        assert path[:2] == ["/usr/bin", "/bin"]
        assert f"{tmp_path}/.local/bin" in path
        assert f"{tmp_path}/.cargo/bin" not in path, "folders that are not there are left out"


def test_what_path_names_already_is_not_named_again(tmp_path):
    (tmp_path / "bin").mkdir()
    env = {"HOME": str(tmp_path), "PATH": f"{tmp_path}/bin:/usr/local/bin", "AKM_EVENT_SOURCE": "cron"}
    assert widened(env)["PATH"].split(":").count(f"{tmp_path}/bin") == 1
