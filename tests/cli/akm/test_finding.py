"""`akm curate`, `akm show` of what nothing runs, and bundles that a schedule or a new workflow names."""

import json
import os


def test_curate_shows_the_texts_that_have_most_to_do_with_a_task(akm):
    akm.write("bundle/knowledge/style.md", "---\ndescription: How release notes are written\n---\nShort sentences.\n")
    akm.write("bundle/commands/notes.md", "---\ndescription: Notes\n---\nWrite $ARGUMENTS.\n")
    akm.write("bundle/knowledge/cats.md", "---\ndescription: Cats\n---\nMeow.\n")
    akm.write("bundle/env/notes.env", "A=1\n")
    found = akm.json("curate", "please", "write the release notes of it")
    assert [(row["ref"], row["content"]) for row in found["assets"]] == [
        ("bundle//commands/notes", "Write $ARGUMENTS."),
        ("bundle//knowledge/style", "Short sentences."),
    ]
    assert found["totalCount"] == 2
    assert len(akm.json("curate", "notes", "--limit", "1")["assets"]) == 1
    assert [row["type"] for row in akm.json("curate", "notes", "--type", "command")["assets"]] == ["command"]
    assert akm.json("curate", "zebra")["assets"] == []
    assert akm("curate").returncode == 2


def test_curate_shows_a_page_of_a_long_text(akm):
    akm.write("bundle/knowledge/long.md", "# Giraffes\n" + "x" * 9000)
    row = akm.json("curate", "giraffes")["assets"][0]
    assert (len(row["content"]), row["truncated"]) == (8000, True)


def test_show_of_what_nothing_runs(akm):
    akm.write("bundle/knowledge/style.md", "---\ndescription: Style\ntags: [a]\n---\n\n# Our style\n\nShort.\n")
    akm.write("bundle/env/e.env", "A=swordfish\n")
    akm.write("bundle/secrets/k", "swordfish")
    path = akm.folder / "bundle/knowledge/style.md"
    assert akm.json("show", "knowledge/style") == {
        "type": "knowledge",
        "name": "style",
        "ref": "bundle//knowledge/style",
        "origin": "bundle",
        "title": "Our style",
        "description": "Style",
        "tags": ["a"],
        "content": "# Our style\n\nShort.",
        "path": str(path),
        "editable": True,
        "shape": "show",
        "schemaVersion": 1,
    }
    env = akm("show", "env/e").stdout
    assert json.loads(env)["keys"] == ["A"]
    assert "swordfish" not in env + akm("show", "secrets/k").stdout
    assert akm.error("show", "knowledge/nope", code=1)["code"] == "ASSET_NOT_FOUND"


def test_a_link_out_of_a_bundle_is_neither_found_nor_shown(akm):
    akm.write("outside.md", "---\ndescription: treasure\n---\n")
    (akm.folder / "bundle/knowledge").mkdir()
    (akm.folder / "bundle/knowledge/out.md").symlink_to(akm.folder / "outside.md")
    assert akm.json("search", "treasure")["hits"] == []
    assert akm.json("curate", "treasure")["assets"] == []
    assert akm.error("show", "knowledge/out", code=2)["code"] == "PATH_ESCAPE_VIOLATION"


def test_search_reads_what_it_can_of_broken_files(akm):
    akm.write("bundle/workflows/latin.md", b"---\ndescription: caf\xe9\n---\n")
    akm.write("bundle/workflows/yaml.md", "---\ndescription: [\n---\n\n# Heading\n")
    akm.write("bundle/workflows/list.yml", "- a\n")
    akm.write("bundle/commands/types.md", "---\ndescription: 3\ntags: no\nname: [x]\n---\n")
    (akm.folder / "bundle/workflows/gone.md").symlink_to(akm.folder / "nowhere")
    hits = akm.json("search")["hits"]
    assert {"bundle//workflows/latin", "bundle//workflows/yaml", "bundle//commands/types"} <= {h["ref"] for h in hits}
    assert akm.json("search", "heading")["totalCount"] == 1


def test_a_workflow_is_created_in_the_bundle_that_is_named(akm):
    akm.json("bundle", "create", "team", "../team")
    made = akm.json("workflow", "create", "new", "--bundle", "team")
    assert (made["ref"], made["path"]) == ("team//workflows/new", str(akm.folder / "team/workflows/new.md"))
    assert "no bundle" in akm.error("workflow", "create", "new", "--bundle", "nope", code=2)["error"]


def test_a_schedule_of_a_project_asks_for_its_bundle_to_be_known_everywhere(akm):
    akm.json("bundle", "create", "ours", "assets", "--project")
    akm.write("project/assets/tasks/t.yml", 'version: 4\nrun: "true"\nschedule: "0 6 * * *"\n')
    error = akm.error("task", "enable", "ours//tasks/t", code=2)
    assert "akm config set bundles.ours.path" in error["hint"]
    assert not (akm.folder / "config/config.json").exists()


def test_env_assets_of_a_project_must_not_make_programs_run_other_code(akm):
    akm.json("bundle", "create", "ours", "assets", "--project")
    akm.write("project/assets/env/evil.env", "LD_PRELOAD=/tmp/x.so\n")
    assert "DANGEROUS_ENV_KEY" in akm("env", "export", "env/evil").stderr


def test_the_project_file_of_a_stranger_is_passed_over(tmp_path, monkeypatch):
    from flowstone.config import project

    (tmp_path / ".akm").mkdir()
    (tmp_path / project.FILE).write_text("{")
    (tmp_path / "work").mkdir()
    mine = os.stat(tmp_path).st_uid
    monkeypatch.setattr(project, "_owner", lambda path: 54321 if path.endswith(project.FILE) else mine)
    assert project.find_project(str(tmp_path / "work")) is None
