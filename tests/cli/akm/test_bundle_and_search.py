"""`akm bundle`, `akm search`, and `akm show` of commands, agents and scripts."""

import json

import pytest


@pytest.fixture
def shelf(akm):
    """A few assets of every kind that is searched."""
    akm.workflow("release", ("a", "true"), head="description: Ship a tagged release\ntags: [deploy]\n")
    akm.write(
        "bundle/commands/review.md",
        "---\ndescription: Review a change\nmodel: m1\n---\n\n# Review\n\nRead $ARGUMENTS.\n",
    )
    akm.write("bundle/agents/critic.md", "---\ndescription: Finds what is wrong\ntools: [Read]\n---\nYou are strict.\n")
    akm.write("bundle/scripts/tidy.sh", "#!/bin/sh\n# Removes what a release left behind\nrm -rf tmp\n")
    akm.write(
        "bundle/tasks/nightly.yml", "version: 4\nname: Nightly\ndescription: Release by night\nuses: scripts/tidy.sh\n"
    )
    akm.write("bundle/env/deploy.env", "TOKEN=release\n")
    akm.write("bundle/secrets/release", "x")
    akm.write("bundle/commands/broken.md", b"\xff\xfe")
    return akm


def refs(envelope):
    return [hit["ref"].removeprefix("bundle//") for hit in envelope["hits"]]


def test_search_looks_at_names_descriptions_and_preambles(shelf):
    found = shelf.json("search", "RELEASE")
    assert refs(found) == ["workflows/release", "scripts/tidy.sh", "tasks/nightly"]
    assert found["hits"][0]["description"] == "Ship a tagged release"
    assert found["hits"][1]["description"] == "Removes what a release left behind"
    scores = [hit["score"] for hit in found["hits"]]
    assert scores == sorted(scores, reverse=True)
    assert refs(shelf.json("search", "release", "night")) == ["tasks/nightly"]
    assert refs(shelf.json("search", "deploy")) == ["env/deploy", "workflows/release"]
    assert refs(shelf.json("search", "read")) == ["commands/review"]
    assert shelf.json("search", "nothing-has-this")["hits"] == []


def test_the_words_in_front_of_the_steps_are_searched_and_the_steps_are_not(shelf):
    text = "---\ntype: workflow\nsteps: [{ id: a }]\n---\n\n# T\n\nFor the quarterly audit.\n\n## a\n\nCount zebras.\n"
    shelf.write("bundle/workflows/q.md", text)
    assert refs(shelf.json("search", "quarterly")) == ["workflows/q"]
    assert shelf.json("search", "zebras")["totalCount"] == 0


def test_search_of_one_type_lists_it(shelf):
    assert refs(shelf.json("search", "--type", "task")) == ["tasks/nightly"]
    assert refs(shelf.json("search", "--type", "commands")) == ["commands/broken", "commands/review"]
    assert "score" not in shelf.json("search", "--type", "command")["hits"][0]
    assert "Known types: workflow, command" in shelf.error("search", "--type", "secret", code=2)["hint"]


def test_search_names_each_asset_once_and_says_how_many_are_left_out(shelf):
    found = shelf.json("search", "--limit", "2")
    assert len(found["hits"]) == 2
    assert found["totalCount"] == 7
    text = shelf("search", "--limit", "2", "--format", "text").stdout
    assert text.endswith("5 more; --limit shows them.\n")


def test_show_of_a_command_an_agent_and_a_script(shelf):
    command = shelf.json("show", "commands/review")
    assert command["type"] == "command"
    assert (command["ref"], command["model"]) == ("bundle//commands/review", "m1")
    assert command["content"] == "# Review\n\nRead $ARGUMENTS."
    assert shelf.json("show", "agents/critic")["tools"] == ["Read"]
    assert shelf.json("show", "scripts/tidy")["content"].startswith("#!/bin/sh")
    assert shelf.error("show", "commands/none", code=1)["code"] == "ASSET_NOT_FOUND"


def test_refs_are_looked_up_in_the_order_of_the_bundles(akm):
    akm.write("team/scripts/both.sh", "echo team\n")
    akm.write("team/scripts/only.sh", "echo only\n")
    akm.write("bundle/scripts/both.sh", "echo own\n")
    entries = {"team": {"path": str(akm.folder / "team")}}
    akm.write("config/config.json", json.dumps({"bundles": entries}))
    steps = ("scripts/both", "team//scripts/both", "scripts/only")
    lines = "".join(f"      - {{ id: s{at}, uses: {ref} }}\n" for at, ref in enumerate(steps))
    head = "name: W\non: { workflow_dispatch: {} }\njobs:\n  j:\n    runs-on: [self-hosted]\n    steps:\n"
    akm.write("bundle/workflows/w.yml", head + lines)
    run = akm.json("workflow", "run", "workflows/w")["run"]["id"]
    status = akm.json("workflow", "status", run)
    assert [step["evidence"]["output"] for step in status["workflow"]["steps"]] == ["own", "team", "only"]
    assert [hit["ref"] for hit in akm.json("search", "both")["hits"]] == [
        "bundle//scripts/both.sh",
        "team//scripts/both.sh",
    ]


def test_a_bundle_is_made_and_listed(akm):
    made = akm.json("bundle", "create", "team", "../shared", AKM_BUNDLE_DIR="")
    assert (akm.folder / "shared/workflows").is_dir()
    assert made["path"] == str(akm.folder / "shared")
    akm.write("shared/workflows/w.md", "---\ntype: workflow\nsteps: [{ id: a }]\n---\n\n## a\n\nDo a.\n")
    (row,) = akm.json("bundle", "list", AKM_BUNDLE_DIR="")["bundles"]
    assert (row["name"], row["default"], row["assets"]) == ("team", True, {"workflows": 1})
    assert akm.json("show", "workflows/w", AKM_BUNDLE_DIR="")["ref"] == "team//workflows/w"
    assert akm("bundle", "create", "team", AKM_BUNDLE_DIR="").returncode == 2
    assert akm("bundle", "create", "no/name", AKM_BUNDLE_DIR="").returncode == 2


def test_the_bundle_that_was_there_stays_the_default_one(akm):
    """Naming a second bundle must not send new assets to it."""
    (akm.folder / "home/akm/workflows").mkdir(parents=True)
    akm.json("bundle", "create", "team", AKM_BUNDLE_DIR="")
    rows = akm.json("bundle", "list", AKM_BUNDLE_DIR="")["bundles"]
    assert [(row["name"], row["default"]) for row in rows] == [("akm", True), ("team", False)]
    akm.json("bundle", "create", "mine", "--default", AKM_BUNDLE_DIR="")
    rows = akm.json("bundle", "list", AKM_BUNDLE_DIR="")["bundles"]
    assert [(row["name"], row["default"]) for row in rows] == [("mine", True), ("akm", False), ("team", False)]


def test_a_project_brings_bundles_of_its_own(akm):
    akm.json("bundle", "create", "ours", "assets", "--project")
    configured = json.loads((akm.folder / "project/.akm/config.json").read_text())
    assert configured == {"bundles": {"ours": {"path": "assets"}}}
    akm.write("project/assets/scripts/s.sh", "echo ours\n")
    rows = akm.json("bundle", "list")["bundles"]
    assert [(row["name"], row["origin"]) for row in rows] == [("bundle", "environment"), ("ours", "project")]
    assert akm.json("show", "scripts/s")["ref"] == "ours//scripts/s.sh"
    assert akm("bundle", "create", "far", "../far", "--project").returncode == 2


@pytest.mark.parametrize("path", ["../elsewhere", "/etc", "link"])
def test_a_bundle_of_a_project_lies_inside_it(akm, path):
    (akm.folder / "project/link").symlink_to("/etc")
    akm.write("project/.akm/config.json", json.dumps({"bundles": {"x": {"path": path}}}))
    assert "leads outside the project" in akm("bundle", "list").stderr


def test_a_marker_of_a_project_may_be_empty(akm):
    akm.write("project/.akm/config.json", "")
    assert len(akm.json("bundle", "list")["bundles"]) == 1
    text = akm("bundle", "list", "--format", "text").stdout
    assert text == f"* bundle  {akm.folder / 'bundle'}  (nothing in it)\n"
