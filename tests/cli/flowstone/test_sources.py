"""The verbs of flowstone that read workflow files: lint, plan, view, show."""

import json

import pytest

from tests.cli.flowstone.flows import BROKEN, CHAIN, GITHUB, MAP


@pytest.fixture
def project(tmp_path, run):
    folder = tmp_path / "project"
    for name, text in (("flow.md", MAP), ("chain.yaml", CHAIN), ("nightly.yml", GITHUB), ("broken.yaml", BROKEN)):
        (folder / name).write_text(text)
    return folder


def test_lint_of_right_and_wrong_files(run, project):
    right = run("flowstone", "lint", "flow.md", "chain.yaml", "nightly.yml")
    assert (right.returncode, right.stdout) == (0, "flow.md: ok\nchain.yaml: ok\nnightly.yml: ok\n")
    wrong = run("flowstone", "lint", "flow.md", "broken.yaml", "missing.md")
    assert wrong.returncode == 1
    assert "flow.md: ok" in wrong.stdout
    assert "broken.yaml:7:5: error:" in wrong.stdout
    assert "7 |     rum: [echo]" in wrong.stdout
    assert "missing.md" in wrong.stdout


def test_lint_as_json_and_sarif(run, project):
    found = json.loads(run("flowstone", "lint", "flow.md", "broken.yaml", "--format", "json").stdout)
    assert (found["ok"], [file["ok"] for file in found["files"]]) == (False, [True, False])
    assert found["files"][1]["diagnostics"][0]["line"] > 0
    sarif = json.loads(run("flowstone", "lint", "broken.yaml", "--format", "sarif").stdout)
    assert sarif["version"] == "2.1.0"
    assert sarif["runs"][0]["results"]


def test_a_plan_is_shown_and_nothing_is_written(run, project, tmp_path):
    before = sorted(path.name for path in project.iterdir())
    shown = json.loads(run("flowstone", "plan", "flow.md", "--json").stdout)
    assert len(shown["planHash"]) == 64
    assert [step["id"] for step in shown["plan"]["steps"]] == ["build", "check"]
    assert run("flowstone", "plan", "chain.yaml").stdout.splitlines()[-1].startswith("plan ")
    assert sorted(path.name for path in project.iterdir()) == before
    assert not (tmp_path / "data").exists()


def test_view_and_show(run, project):
    assert "check  map of command  ← build" in run("flowstone", "view", "flow.md").stdout
    shown = run("flowstone", "show", "chain.yaml").stdout
    assert 'who    string, default "World": Who is greeted' in shown
    assert "outputs: said" in shown
    document = json.loads(run("flowstone", "show", "flow.md", "--json").stdout)
    assert [param["name"] for param in document["params"]] == ["version", "items"]
    assert run("flowstone", "view", "broken.yaml").returncode == 2


def test_a_workflow_of_a_bundle_by_its_ref(run, project, environment):
    from pathlib import Path

    folder = Path(environment["AKM_BUNDLE_DIR"]) / "workflows"
    folder.mkdir(parents=True)
    (folder / "checked.md").write_text(MAP)
    assert run("flowstone", "lint", "workflows/checked").returncode == 0
    assert run("flowstone", "run", "workflows/checked", "--set", "items=[]").returncode == 0
