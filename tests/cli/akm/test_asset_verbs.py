"""create, plan, lint, show and log as a user sees them (akm facts 21 to 24 and 31.1)."""

import json

BARE = (
    "---\ntype: workflow\nsteps:\n  - id: a\n    unit: { exec: { command: [echo, hi] } }\n---\n\n# T\n\n## a\n\nDo a.\n"
)


def test_create(akm):
    made = akm.json("workflow", "create", "fresh", "--path", "team")
    assert (made["ok"], made["ref"]) == (True, "workflows/team/fresh")
    assert made["stashDir"] == str(akm.folder / "bundle")
    assert akm.json("lint", "--type", "workflows")["flagged"] == []
    error = akm.error("workflow", "create", "fresh", "--path", "team", code=2)
    assert error["code"] == "RESOURCE_ALREADY_EXISTS"
    assert "already exists" in error["error"]


def test_create_refuses_names(akm):
    for name in ("a/b", "Bad Name", "-x"):
        assert akm.error("workflow", "create", "--", name, code=2)["code"] == "INVALID_FLAG_VALUE"
    assert "--path" in akm.error("workflow", "create", "a/b", code=2)["hint"]
    assert akm.error("workflow", "create", "x", "--path", "../up", code=2)["code"] == "INVALID_FLAG_VALUE"


def test_create_force_and_print(akm):
    akm.workflow("w", ("a", "echo old"))
    error = akm.error("workflow", "create", "w", "--force", code=2)
    assert error["code"] == "INVALID_FLAG_VALUE"
    akm.write("project/new.md", BARE)
    akm.json("workflow", "create", "w", "--force", "--from", "new.md")
    assert (akm.folder / "bundle/workflows/w.md").read_text() == BARE
    akm.json("workflow", "create", "w", "--force", "--reset")
    assert (akm.folder / "bundle/workflows/w.md").read_text() != BARE
    printed = akm("workflow", "create", "x", "--print").stdout
    assert printed.startswith("---\n")
    assert not (akm.folder / "bundle/workflows/x.md").exists()


def test_plan_writes_nothing(akm):
    akm.workflow("w", ("a", "echo a"))
    shown = akm.json("workflow", "plan", "workflows/w")
    assert (shown["published"], shown["sourceFormat"], len(shown["planHash"])) == (False, "akm-markdown", 64)
    assert shown["steps"][0]["targetKind"] == "shell"
    assert shown["sourceReadSet"][0]["path"] == "../bundle/workflows/w.md"
    assert "echo a" not in json.dumps(shown)
    assert not (akm.folder / "data").exists()


def test_broken_workflow_has_a_line_for_each_mistake(akm):
    akm.write("bundle/workflows/w.md", BARE.replace("steps:", "foo: 1\nbar: 2\nsteps:"))
    for verb in ("run", "plan"):
        error = akm.error("workflow", verb, "workflows/w", code=2)
        lines = error["error"].split("\n")
        assert [line.partition(": ")[0] for line in lines] == [
            "../bundle/workflows/w.md:3",
            "../bundle/workflows/w.md:4",
        ]
        assert error["code"] == "WORKFLOW_SOURCE_INVALID"


def test_lint_fix_changes_one_line_only(akm):
    akm.write("bundle/workflows/w.md", BARE)
    crlf = akm.write("bundle/workflows/deep/v.md", BARE.replace("\n", "\r\n"))
    flow = akm.write("bundle/workflows/f.md", "---\n{ type: workflow }\n---\n")
    found = akm.json("lint", "--type", "workflows")
    assert {row["file"] for row in found["flagged"] if row["issue"] == "missing-updated"} == {
        "workflows/w.md",
        "workflows/deep/v.md",
        "workflows/f.md",
    }
    akm.json("lint", "--type", "workflows", "--fail-on-flagged", code=1)
    fixed = akm.json("lint", "--fix")
    assert [row["file"] for row in fixed["fixed"]] == ["workflows/w.md", "workflows/deep/v.md"]
    changed = crlf.read_bytes().split(b"\r\n")
    assert [line for line in changed if not line.startswith(b"updated: ")] == BARE.encode().split(b"\n")
    assert b"\n" not in crlf.read_bytes().replace(b"\r\n", b"")
    assert flow.read_text() == "---\n{ type: workflow }\n---\n"


def test_lint_warnings_and_types(akm):
    akm.workflow("w", ("a", "true"))
    text = BARE.replace("unit: {", "map: { over: params.xs, unit: {").replace("} }\n", "} } }\n")
    akm.write("bundle/workflows/v.md", text.replace("steps:", "updated: 2026-01-01\nsteps:"))
    found = akm.json("lint")
    assert [row["issue"] for row in found["warnings"]] == ["workflow-warning"]
    assert found["flagged"] == []
    error = akm.error("lint", "--type", "nonsense", code=2)
    assert "workflows" in error["hint"]
    assert akm.error("lint", "--dir", "nowhere", code=2)["code"] == "INVALID_FLAG_VALUE"


def test_show(akm):
    akm.workflow("w", ("a", "echo a"), ("b", "true"), head="description: What it is for\n")
    shown = akm.json("show", "workflows/w")
    assert (shown["name"], shown["origin"], shown["description"]) == ("w", "bundle", "What it is for")
    assert shown["steps"][0]["orchestration"]["exec"]["command"] == ["sh", "-c", "echo a"]
    assert "activeRun" not in shown
    run_id = akm.json("workflow", "run", "workflows/w", "--max-steps", "1")["run"]["id"]
    active = akm.json("show", "workflows/w")["activeRun"]
    assert (active["runId"], active["stepId"]) == (run_id, "b")


def test_log(akm):
    akm.workflow("w", ("a", "true"), head="tags: [nightly]\n")
    akm.workflow("v", ("a", "true"))
    run_id = akm.json("workflow", "run", "workflows/w")["run"]["id"]
    akm.json("workflow", "run", "workflows/v")
    shown = akm.json("log", "--run", run_id, "--detail", "full")
    assert [event["eventType"] for event in shown["events"]] == [
        "workflow_started",
        "workflow_unit_started",
        "workflow_unit_finished",
        "workflow_step_completed",
        "workflow_finished",
    ]
    assert akm.json("log", "--type", "workflow_finished")["totalCount"] == 2
    assert akm.json("log", "--ref", "workflows/w", "--type", "workflow_finished")["totalCount"] == 1
    assert akm.json("log", "--include-tags", "nightly", "--type", "workflow_finished")["totalCount"] == 1
    assert akm.json("log", "--exclude-tags", "nightly", "--type", "workflow_started")["totalCount"] == 1
    end = akm.json("log", "--limit", "1")["nextOffset"]
    assert akm.json("log", "--since", f"@offset:{end}")["events"] == []
    assert akm.json("log", "--since", "2999-01-01")["events"] == []
    assert akm.error("log", "--since", "yesterday", code=2)["code"] == "INVALID_FLAG_VALUE"


def test_lint_leaves_other_yaml_alone(akm):
    akm.write("bundle/workflows/notes.yml", "just: data\n")
    akm.write("bundle/workflows/half.yml", "on: { workflow_dispatch: {} }\n")
    assert {row["file"] for row in akm.json("lint")["flagged"]} == {"workflows/half.yml"}
