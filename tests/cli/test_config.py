"""akm config, through real processes."""

import json
import os

import pytest


def test_a_value_is_set_read_listed_and_unset(run, tmp_path):
    done = run("akm", "config", "set", "workflow.defaultMapConcurrency", "2")
    assert done.returncode == 0
    assert json.loads(done.stdout) == {"workflow": {"defaultMapConcurrency": 2}, "configVersion": "0.9.0"}
    assert json.loads((tmp_path / "config" / "config.json").read_text())["workflow"] == {"defaultMapConcurrency": 2}
    assert run("akm", "config", "get", "workflow.defaultMapConcurrency").stdout == "2\n"
    assert json.loads(run("akm", "config", "list").stdout)["workflow"] == {"defaultMapConcurrency": 2}
    assert run("akm", "config", "unset", "workflow.defaultMapConcurrency").returncode == 0
    assert run("akm", "config", "get", "workflow.defaultMapConcurrency").stdout == "null\n"


@pytest.mark.parametrize(
    ("argv", "code", "part"),
    [
        (["get"], "MISSING_REQUIRED_ARGUMENT", "Missing required positional argument: KEY"),
        (["set", "a"], "MISSING_REQUIRED_ARGUMENT", "Missing required positional argument: VALUE"),
        (["list", "--zz"], "UNKNOWN_FLAG", "Unknown flag --zz"),
        (["list", "--format", "nope"], "INVALID_FLAG_VALUE", "Invalid value for --format"),
        (["list", "--format"], "INVALID_FLAG_VALUE", "--format requires a value"),
        (["list", "extra"], "INVALID_FLAG_VALUE", "extra"),
        (["set", "workflow.hostConcurrency", "-1"], "INVALID_FLAG_VALUE", "from 1 to 64"),
        (["set", "engines.x.args", "{"], "INVALID_JSON_ARGUMENT", "JSON"),
        ([], "MISSING_REQUIRED_ARGUMENT", "get, list, set, unset"),
    ],
)
def test_usage_errors(run, argv, code, part):
    result = run("akm", "config", *argv)
    error = json.loads(result.stderr)
    assert (result.returncode, result.stdout, error["code"]) == (2, "", code)
    assert part in error["error"]


def test_a_broken_file_is_a_configuration_error_with_its_place(run, tmp_path):
    (tmp_path / "config").mkdir()
    path = tmp_path / "config" / "config.json"
    path.write_text('{\n  "a": ,\n}')
    result = run("akm", "config", "list")
    error = json.loads(result.stderr)
    assert (result.returncode, error["code"]) == (78, "INVALID_CONFIG_FILE")
    assert error["error"].startswith(f"{path}:2:8: ")


def test_faults_are_warned_about_and_keys_in_the_clear_are_not_shown(run, tmp_path):
    (tmp_path / "config").mkdir()
    engine = {"kind": "llm", "apiKey": "sk-clear-text-1"}
    (tmp_path / "config" / "config.json").write_text(json.dumps({"engines": {"x": engine}}))
    result = run("akm", "config", "list")
    assert result.returncode == 0
    assert "warning: engines.x.apiKey must name an environment variable" in result.stderr
    assert "sk-clear" not in result.stdout + result.stderr
    assert run("akm", "config", "list", "--quiet").stderr == ""


@pytest.mark.parametrize(
    ("form", "text"),
    [
        ("yaml", "a: é\n"),
        ("jsonl", '{"a":"é"}\n'),
        ("text", "a: é\n"),
        ("md", "- **a**: é\n"),
    ],
)
def test_formats(run, tmp_path, form, text):
    (tmp_path / "config").mkdir()
    (tmp_path / "config" / "config.json").write_text('{"a": "é"}')
    assert run("akm", "config", "list", "--format", form).stdout == text
    assert run("akm", "--format", form, "config", "list").stdout == text


def test_output_to_a_file(run, tmp_path):
    result = run("akm", "config", "list", "--output", "out.json")
    assert (result.returncode, result.stdout) == (0, "")
    assert (tmp_path / "project" / "out.json").read_text() == "{}\n"
    assert os.listdir(tmp_path / "project") == ["out.json"]
    refused = run("akm", "config", "list", "--output", "no/such/folder")
    assert refused.returncode == 2
    assert "cannot be written" in json.loads(refused.stderr)["error"]


def test_a_reader_that_goes_away_is_no_error(run):
    reader, writer = os.pipe()
    os.close(reader)
    result = run("akm", "config", "list", stdout=writer)
    os.close(writer)
    assert (result.returncode, result.stderr) == (0, "")


def test_a_full_disk_is_told_in_one_error(run):
    with open("/dev/full", "w") as full:
        result = run("akm", "config", "list", stdout=full)
    assert result.returncode == 70
    assert json.loads(result.stderr)["code"] == "OUTPUT_FAILED"


def test_an_unexpected_error_keeps_its_traceback_in_a_file(run, tmp_path):
    (tmp_path / "config" / "config.json").mkdir(parents=True)
    result = run("akm", "config", "list")
    assert result.returncode == 78
    assert "cannot be read" in json.loads(result.stderr)["error"]
