"""To which folder a run belongs."""

import hashlib

from flowstone.config.scope import run_scope


def test_a_project_configuration_wins_over_a_nearer_repository(tmp_path):
    (tmp_path / ".akm").mkdir()
    (tmp_path / ".akm" / "config.json").write_text("{}")
    inner = tmp_path / "a" / "b"
    (inner / ".git").mkdir(parents=True)
    assert run_scope(str(inner)).path == str(tmp_path)


def test_the_nearest_repository(tmp_path):
    (tmp_path / ".git").mkdir()
    (tmp_path / "a" / ".git").mkdir(parents=True)
    (tmp_path / "a" / "b").mkdir()
    assert run_scope(str(tmp_path / "a" / "b")).path == str(tmp_path / "a")


def test_the_bundle_root_and_else_the_folder_itself(tmp_path):
    inner = tmp_path / "bundle" / "workflows"
    inner.mkdir(parents=True)
    near = tmp_path / "bundle-2"
    near.mkdir()
    assert run_scope(str(inner), str(tmp_path / "bundle")).path == str(tmp_path / "bundle")
    assert run_scope(str(near), str(tmp_path / "bundle")).path == str(near)


def test_the_key_is_made_of_the_real_path(tmp_path):
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    scope = run_scope(str(tmp_path / "link"))
    assert scope.path == str(tmp_path / "real")
    assert scope.key == "dir:v1:" + hashlib.sha256(scope.path.encode()).hexdigest()
