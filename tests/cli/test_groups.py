"""Groups of verbs: what they say bare, about unknown and removed verbs, and in help."""

import json

import pytest


def test_bare_akm_workflow_lists_its_verbs(run):
    result = run("akm", "workflow")
    assert (result.returncode, result.stdout) == (2, "")
    error = json.loads(result.stderr)
    assert error["ok"] is False
    assert error["code"] == "MISSING_REQUIRED_ARGUMENT"
    assert "abandon, create, list, plan, resume, run, status" in error["error"]


@pytest.mark.parametrize(
    ("verb", "instead"),
    [
        ("start", "akm workflow run"),
        ("next", "akm workflow run"),
        ("complete", "akm workflow run"),
        ("brief", "akm workflow status"),
        ("report", "--format html"),
        ("template", "create <name> --print"),
        ("validate", "akm lint --type workflows"),
        ("watch", "--watch"),
    ],
)
def test_removed_verbs_name_their_replacement(run, verb, instead):
    result = run("akm", "workflow", verb, "x")
    error = json.loads(result.stderr)
    assert result.returncode == 2
    assert (error["code"], error["error"]) == ("UNKNOWN_COMMAND", f"Unknown command {verb}")
    assert instead in error["hint"]


def test_an_unknown_verb_gets_the_nearest_one(run):
    error = json.loads(run("akm", "workflow", "statsu").stderr)
    assert error["hint"] == "Did you mean `akm workflow status`?"


def test_bare_orun_workflow_prints_help(run):
    result = run("orun", "workflow")
    assert (result.returncode, result.stderr) == (0, "")
    assert "Usage:" in result.stdout
    assert "Example:" in result.stdout


def test_orun_marks_its_errors(run):
    result = run("orun", "workflow", "fly")
    assert (result.returncode, result.stdout, result.stderr) == (1, "", "✕ Unknown command fly\n")


def test_flowstone_explains_its_errors(run):
    result = run("flowstone", "schemas")
    assert result.returncode == 2
    assert result.stderr == "error: Unknown command schemas\n  hint: Did you mean `flowstone schema`?\n"


def test_both_drop_ins_are_reachable_through_flowstone(run):
    assert json.loads(run("flowstone", "akm", "workflow").stderr)["code"] == "MISSING_REQUIRED_ARGUMENT"
    assert run("flowstone", "orun", "fly").stderr == "✕ Unknown command fly\n"
    assert "Usage: flowstone orun" in run("flowstone", "orun").stderr


def test_help_of_a_group_comes_from_its_table(run):
    result = run("akm", "workflow", "--help")
    assert result.returncode == 0
    assert "Show where a run stands." in result.stdout
    assert "Example: akm workflow run" in result.stdout


def test_the_version(run):
    for program in ("akm", "orun", "flowstone"):
        assert run(program, "--version").stdout.startswith("flowstone ")


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_scripts(run, shell):
    result = run("flowstone", "completion", shell, "--program", "akm")
    assert result.returncode == 0
    assert "_AKM_COMPLETE" in result.stdout


def test_completion_offers_verbs_without_their_modules(run):
    result = run(
        "akm",
        COMP_WORDS="akm workflow re",
        COMP_CWORD="2",
        _MAIN_COMPLETE="bash_complete",
        _AKM_COMPLETE="bash_complete",
    )
    assert result.stdout.split() == ["plain,resume"]


def test_schema_of_an_unknown_language(run):
    result = run("flowstone", "schema", "klingon")
    assert result.returncode == 2
    assert 'no language "klingon"' in result.stderr
