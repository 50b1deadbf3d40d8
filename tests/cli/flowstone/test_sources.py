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
    wrong = run("flowstone", "lint", "flow.md", "broken.yaml")
    assert wrong.returncode == 1
    assert "flow.md: ok" in wrong.stdout
    assert "broken.yaml:7:5: error:" in wrong.stdout
    assert "7 |     rum: [echo]" in wrong.stdout


UNREADABLE = {
    "missing.md": (None, "no such file"),
    "folder.md": ("folder", "is a directory"),
    "folder": ("folder", "is a directory"),
    "latin.md": ("---\n# \xe9\n".encode("latin-1"), "not UTF-8"),
    "marked.md": ("---\n".encode("utf-16"), "the file is UTF-16, not UTF-8"),
    "wide.yaml": ("apiVersion: orun.dev/v1\n".encode("utf-16-le"), "the file is UTF-16 (little-endian), not UTF-8"),
    "big.yml": ("on: workflow_dispatch\n".encode("utf-16-be"), "the file is UTF-16 (big-endian), not UTF-8"),
    "": (None, "is empty"),
}


@pytest.mark.parametrize("name", UNREADABLE)
def test_a_file_that_cannot_be_read_is_a_usage_error_without_a_place(run, project, name):
    content, says = UNREADABLE[name]
    if content == "folder":
        (project / name).mkdir()
    elif content is not None:
        (project / name).write_bytes(content)
    for verb in ("lint", "run", "plan", "view", "show"):
        ended = run("flowstone", verb, name)
        assert str(project) not in ended.stdout + ended.stderr
        assert ended.returncode == 2, verb
        said = ended.stdout + ended.stderr
        assert says in said
        assert "^" not in said
        assert ":1:1" not in said
        if content not in (None, "folder"):
            assert "save" in said
            assert "UTF-8" in said
    (found,) = json.loads(run("flowstone", "lint", name, "--format", "json").stdout)["files"]
    assert (found["diagnostics"][0]["line"], found["diagnostics"][0]["column"]) == (None, None)
    (result,) = json.loads(run("flowstone", "lint", name, "--format", "sarif").stdout)["runs"][0]["results"]
    assert "region" not in result["locations"][0]["physicalLocation"]


@pytest.mark.parametrize(
    "head", ["apiVersion: orun.dev/v11\nkind: Workflow", "kind: Workflow", "apiVersion: orun.dev/v1"]
)
def test_a_wrong_or_forgotten_head_hides_no_other_mistake(run, project, head):
    (project / "broken.yaml").write_text(BROKEN.replace("apiVersion: orun.dev/v1\nkind: Workflow", head))
    said = run("flowstone", "lint", "broken.yaml").stdout
    assert "not a workflow" in said
    assert "rum" in said


def test_another_language_with_the_same_kind_gets_no_mistakes_of_ours(run, project):
    (project / "argo.yaml").write_text("apiVersion: argoproj.io/v1alpha1\nkind: Workflow\nspec: {}\n")
    assert run("flowstone", "lint", "argo.yaml").stdout.count("error:") == 1


def test_a_misspelt_kind_hides_no_other_mistake(run, project):
    (project / "broken.yaml").write_text(BROKEN.replace("kind: Workflow", "kind: Wrkflow"))
    said = run("flowstone", "lint", "broken.yaml").stdout
    assert 'want apiVersion orun.dev/v1 kind Workflow, got "orun.dev/v1" "Wrkflow"' in said
    assert "rum" in said
    assert 'needs unknown step "zzz"' in said


@pytest.mark.parametrize("text", ["", "# nothing\n"])
def test_a_yaml_file_of_no_language_is_told_of_both(run, project, text):
    (project / "empty.yml").write_text(text)
    refused = run("flowstone", "lint", "empty.yml")
    assert refused.returncode == 1
    assert "^" not in refused.stdout
    for part in ("apiVersion: orun.dev/v1", "`on` and `jobs`"):
        assert part in refused.stdout


def test_a_name_that_begins_with_a_dash(run, project):
    (project / "-flow.md").write_text(MAP)
    refused = run("flowstone", "lint", "-flow.md")
    assert (refused.returncode, "./-flow.md" in refused.stderr) == (2, True)
    assert run("flowstone", "lint", "./-flow.md").returncode == 0


def test_values_that_do_not_fit_are_named_as_they_were_given(run, project):
    refused = run("flowstone", "run", "flow.md", "--set", "items=[1")
    assert refused.returncode == 2
    assert "--set items" in refused.stderr
    assert "--items" not in refused.stderr


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
