"""What people are told of units: cut output, the same words and ids on every surface."""

import json
import re

import pytest

from tests.cli.flowstone.flows import MAP

BIG = """\
---
type: workflow
steps:
  - id: big
    unit: { exec: { command: [sh, -c, "head -c 9000000 /dev/zero | tr '\\\\0' x"] } }
---

# Big

## big

Print much.
"""
BIG_ORUN = """\
apiVersion: orun.dev/v1
kind: Workflow
metadata: { name: big }
steps:
  - name: big
    run: [sh, -c, "head -c 5000000 /dev/zero | tr '\\\\0' x; head -c 5000000 /dev/zero | tr '\\\\0' y >&2"]
"""
SMALL = """\
apiVersion: orun.dev/v1
kind: Workflow
metadata: { name: small }
steps: [{ name: a, run: ["true"] }]
"""
ENV = """\
---
type: workflow
steps:
  - id: a
    unit: { exec: { command: ["true"] }, env: [env/nope] }
---

# Env

## a

Use what is not there.
"""
VOTE = """\
---
type: workflow
params: { items: { type: array, default: [a, a, b] } }
steps:
  - id: choose
    map:
      over: params.items
      reducer: vote
      unit: { exec: { command: [sh, -c, "echo $AKM_ITEM"] } }
---

# Vote

## choose

Choose.
"""


@pytest.fixture
def project(tmp_path, environment):
    folder = tmp_path / "project"
    for name, text in (
        ("big.md", BIG),
        ("big.yaml", BIG_ORUN),
        ("flow.md", MAP),
        ("vote.md", VOTE),
        ("small.yaml", SMALL),
        ("env.md", ENV),
    ):
        (folder / name).write_text(text)
    return folder


def status(run, *argv):
    return json.loads(run("flowstone", "status", "--last", "--json", *argv).stdout)


def test_cut_output_is_told_wherever_the_unit_is_shown(run, project):
    ran = run("flowstone", "run", "big.md")
    assert ran.returncode == 0
    told = "its stdout was cut at 8 MiB: it wrote 9,000,000 bytes"
    assert f'warning: unit "big:solo": {told}' in ran.stdout
    assert f"note: {told}" in run("flowstone", "status", "--units").stdout
    assert f"note: {told}" in run("flowstone", "why", "--last", "big").stdout
    found = status(run, "--units")
    assert found["steps"][0]["unitRows"][0]["notes"][0].startswith(told)
    assert found["steps"][0]["notes"][0].startswith('unit "big:solo": its stdout was cut')
    rows = json.loads(run("akm", "workflow", "status", found["run"], "--units").stdout)["units"]
    assert rows[0]["notes"][0].startswith(told)
    assert told in run("akm", "workflow", "status", found["run"], "--units", "--format", "text").stdout
    assert told in run("flowstone", "status", "--format", "html").stdout


def test_an_orun_step_tells_it_in_its_file_and_on_the_terminal(run, project):
    ran = run("orun", "workflow", "run", "big.yaml")
    assert ran.returncode == 0
    assert "  ! step big: its stdout was cut at 4 MiB: it wrote 5,000,000 bytes" in ran.stdout
    (file,) = project.glob(".orun/wfruns/*/steps/big.json")
    notes = json.loads(file.read_text())["notes"]
    assert [note.split(":")[0] for note in notes] == ["its stdout was cut at 4 MiB", "its stderr was cut at 4 MiB"]


def test_whole_output_has_no_notes(run, project):
    run("flowstone", "run", "flow.md", "--set", 'items=["a"]')
    found = status(run, "--units")
    assert "notes" not in found["steps"][0]
    assert found["steps"][0]["unitRows"][0]["notes"] == []


def test_one_word_for_one_thing_in_text_and_json(run, project):
    ran = run("flowstone", "run", "flow.md", "--set", 'items=["bad"]')
    assert "build: succeeded in" in ran.stdout
    text = run("flowstone", "status").stdout
    assert text.startswith("Checked build: failed\n")
    assert "✓ build  succeeded" in text
    assert [step["status"] for step in status(run)["steps"]] == ["succeeded", "failed"]
    page = run("flowstone", "status", "--format", "html").stdout
    assert ">completed<" not in page


def test_a_short_unit_id_is_shown_and_taken(run, project):
    ran = run("flowstone", "run", "flow.md", "--set", 'items=["a","bad"]')
    assert not re.search("[0-9a-f]{64}", ran.stdout + ran.stderr)
    units = run("flowstone", "status", "--units").stdout
    assert not re.search(r"check\.unit:[0-9a-f]{13}", units)
    short = re.search(r"check\.unit:[0-9a-f]{12}", units)[0]
    why = run("flowstone", "why", "--last", short)
    assert why.stdout.startswith(f"{short}: ")
    whole = status(run, "--units")["steps"][1]["unitRows"][0]["unit"]
    assert re.fullmatch(r"check\.unit:[0-9a-f]{64}", whole)
    assert json.loads(run("flowstone", "why", "--last", short, "--json").stdout)["unit"].startswith(short)


def test_an_index_beyond_the_units_names_the_range(run, project):
    run("flowstone", "run", "flow.md", "--set", 'items=["a","b"]')
    refused = run("flowstone", "why", "--last", "check[10000]")
    assert refused.returncode == 2
    assert "Its units are check[0] to check[1]" in refused.stderr


def test_a_vote_that_is_decided_is_noted_in_the_summary(run, project):
    envelope = json.loads(run("akm", "workflow", "run", "./vote.md").stdout)
    assert envelope["executed"][0]["summary"].endswith('Vote: "a" won with 2 of 3 vote(s).')


@pytest.mark.parametrize("verb", ["status", "resume", "abandon", "run"])
def test_akm_names_the_command_that_knows_a_run_of_orun(run, project, verb):
    run("orun", "workflow", "run", "small.yaml")
    known = status(run)["run"]
    for name in (known, known[:-4]):
        refused = run("akm", "workflow", verb, name)
        assert refused.returncode == 1
        assert f"flowstone status {known}" in json.loads(refused.stderr)["hint"]


def test_a_missing_env_asset_is_told_with_the_folder_that_was_looked_in(run, project, environment):
    ran = run("flowstone", "run", "env.md")
    assert ran.returncode == 1
    assert f"Env not found: env/nope (Looked for it in {environment['AKM_BUNDLE_DIR']}/env" in ran.stdout
