"""`resume --from`, `resume --only` and `run --reuse`: what runs again, what stands, and what is asked first."""

from __future__ import annotations

import json

import pytest

STEPS = """\
apiVersion: orun.dev/v1
kind: Workflow
metadata: {{ name: line }}
inputs:
  who: {{ type: string, default: you }}
steps:
  - {{ name: a, run: [sh, -c, "echo a >> {log}; echo {{{{ inputs.who }}}}"], outputs: {{ said: stdout }} }}
  - {{ name: b, needs: [a], run: [sh, -c, "echo b >> {log}"] }}
  - {{ name: c, needs: [b], run: [sh, -c, "echo c >> {log}; test -e {ok}"] }}
  - {{ name: d, needs: [a], run: [sh, -c, "echo d >> {log}"] }}
"""
MAP = """\
---
type: workflow
description: A map
params:
  items: {{ type: array, items: {{ type: string }} }}
steps:
  - id: check
    map:
      over: params.items
      unit: {{ exec: {{ command: [sh, -c, 'echo $AKM_ITEM >> {log}; case $AKM_ITEM in *bad*) test -e {ok};; esac'] }} }}
  - id: tell
    unit: {{ exec: {{ command: [sh, -c, 'echo tell >> {log}'] }} }}
---

# Map

## check

Check.

## tell

Tell.
"""


@pytest.fixture
def project(tmp_path):
    folder = tmp_path / "project"
    names = {"log": tmp_path / "log", "ok": tmp_path / "ok"}
    (folder / "line.yaml").write_text(STEPS.format(**names))
    (folder / "map.md").write_text(MAP.format(**names))
    return folder


@pytest.fixture
def ran(tmp_path):
    """The marks that steps have left since the last look."""

    def look():
        log = tmp_path / "log"
        words = log.read_text().split() if log.exists() else []
        log.write_text("")
        return words

    return look


def test_from_runs_a_step_and_all_that_follows_from_it(run, project, tmp_path, ran):
    assert run("flowstone", "run", "line.yaml").returncode == 1
    assert sorted(ran()) == ["a", "b", "c", "d"]
    (tmp_path / "ok").touch()
    assert run("flowstone", "resume", "--last", "--from", "b").returncode == 0
    assert ran() == ["b", "c"]


def test_from_takes_up_a_run_that_succeeded(run, project, tmp_path, ran):
    (tmp_path / "ok").touch()
    assert run("flowstone", "run", "line.yaml").returncode == 0
    ran()
    assert run("flowstone", "resume", "--last", "--from", "a").returncode == 0
    assert sorted(ran()) == ["a", "b", "c", "d"]


def test_units_of_a_map_run_afresh_too(run, project, tmp_path, ran):
    (tmp_path / "ok").touch()
    assert run("flowstone", "run", "map.md", "--set", 'items=["x", "y"]').returncode == 0
    ran()
    assert run("flowstone", "resume", "--last", "--from", "check").returncode == 0
    assert sorted(ran()) == ['"x"', '"y"', "tell"]


def test_only_runs_one_step_and_what_follows_stands(run, project, tmp_path, ran):
    assert run("flowstone", "run", "line.yaml").returncode == 1
    ran()
    assert run("flowstone", "resume", "--last", "--only", "a").returncode == 1  # c still has failed
    assert ran() == ["a"]
    (tmp_path / "ok").touch()
    assert run("flowstone", "resume", "--last", "--only", "c").returncode == 0
    assert ran() == ["c"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--only", "zz"), 'no step "zz"'),
        (("--from", "zz"), "Its steps are: check, tell."),
        (("--only", "tell"), "resume --from check"),
        (("--only", "check", "--from", "check"), "not both"),
    ],
)
def test_a_step_that_cannot_be_run_again_is_refused(run, project, ran, words, said):
    assert run("flowstone", "run", "map.md", "--set", 'items=["bad"]').returncode == 1
    ran()
    refused = run("flowstone", "resume", "--last", *words)
    assert (refused.returncode, said in refused.stderr) == (2, True)
    assert ran() == []


def test_a_run_that_was_given_up_is_not_taken_up(run, project, ran):
    assert run("flowstone", "run", "line.yaml", "--max-steps", "1").returncode == 1
    assert run("flowstone", "abandon", "--last").returncode == 0
    refused = run("flowstone", "resume", "--last", "--from", "a")
    assert (refused.returncode, "--reuse" in refused.stderr) == (2, True)


def test_reuse_takes_over_what_is_unchanged(run, project, tmp_path, ran):
    assert run("flowstone", "run", "line.yaml").returncode == 1
    ran()
    first = _last(run)
    (tmp_path / "ok").touch()
    path = project / "line.yaml"
    path.write_text(path.read_text().replace("echo d", "echo D"))
    again = run("flowstone", "run", "line.yaml", "--reuse", first, "--yes")
    assert again.returncode == 0
    assert again.stderr.splitlines()[:5] == [
        f"taking over run {first}:",
        "  a  reused",
        "  b  reused",
        "  c  run again  it failed",
        "  d  run again  its definition changed",
    ]
    assert sorted(ran()) == ["D", "c"]
    assert _last(run) != first


def test_nothing_is_taken_over_unasked(run, project, ran):
    run("flowstone", "run", "line.yaml")
    ran()
    first = _last(run)
    refused = run("flowstone", "run", "line.yaml", "--reuse", first)
    assert (refused.returncode, "--yes" in refused.stderr) == (2, True)
    assert (ran(), _last(run)) == ([], first)


def test_another_parameter_runs_everything_again(run, project, tmp_path, ran):
    (tmp_path / "ok").touch()
    run("flowstone", "run", "line.yaml")
    ran()
    again = run("flowstone", "run", "line.yaml", "--reuse", _last(run), "--yes", "--set", "who=me")
    assert "changed parameter: who" in again.stderr
    assert sorted(ran()) == ["a", "b", "c", "d"]


def test_a_step_that_follows_a_new_one_runs_again(run, project, tmp_path, ran):
    (tmp_path / "ok").touch()
    run("flowstone", "run", "line.yaml")
    ran()
    path = project / "line.yaml"
    new = f'  - {{ name: first, run: [sh, -c, "echo first >> {tmp_path / "log"}"] }}\n'
    path.write_text(path.read_text().replace("steps:\n", f"steps:\n{new}").replace("needs: [b]", "needs: [b, first]"))
    again = run("flowstone", "run", "line.yaml", "--reuse", _last(run), "--yes")
    assert "first  new" in again.stderr
    assert sorted(ran()) == ["c", "first"]


def test_finished_units_of_a_failed_map_are_taken_over(run, project, tmp_path, ran):
    assert run("flowstone", "run", "map.md", "--set", 'items=["x", "bad", "y"]').returncode == 1
    assert '"x"' in ran()
    (tmp_path / "ok").touch()
    again = run("flowstone", "run", "map.md", "--set", 'items=["x", "bad", "y"]', "--reuse", _last(run), "--yes")
    assert again.returncode == 0
    assert set(ran()) <= {'"bad"', '"y"', "tell"}


def test_a_run_of_another_language_is_not_taken_over(run, project):
    run("flowstone", "run", "line.yaml")
    refused = run("flowstone", "run", "map.md", "--set", "items=[]", "--reuse", _last(run), "--yes")
    assert (refused.returncode, "another language" in refused.stderr) == (2, True)


def _last(run):
    return json.loads(run("flowstone", "status", "--last", "--json").stdout)["run"]


def test_an_action_that_moved_to_another_line_stands(run, project):
    head = "apiVersion: orun.dev/v1\nkind: Workflow\nmetadata: { name: acts }\ninputs: { n: { default: x } }\n"
    step = "steps:\n  - name: a\n    action: script\n    with: { source: input.n, input: { n: '{{ inputs.n }}' } }\n"
    (project / "acts.yaml").write_text(head + step)
    assert run("flowstone", "run", "acts.yaml").returncode == 0
    run_id = run("flowstone", "list").stdout.split()[0]
    (project / "acts.yaml").write_text(f"{head}# a line more\n{step}")
    again = run("flowstone", "run", "acts.yaml", "--reuse", run_id, "--yes")
    assert again.returncode == 0
    assert "a: started" not in again.stdout


KID = """\
apiVersion: orun.dev/v1
kind: Workflow
metadata: {{ name: kid }}
steps:
  - {{ name: k, run: [sh, -c, "echo k >> {log}"], outputs: {{ said: "'x'" }} }}
"""
OUTER = """\
apiVersion: orun.dev/v1
kind: Workflow
metadata: {{ name: outer }}
steps:
  - {{ name: n, workflow: kid.yaml }}
  - {{ name: z, needs: [n], run: [sh, -c, "echo z >> {log}; test -e {ok}"] }}
"""


@pytest.fixture
def nested(project, tmp_path):
    names = {"log": tmp_path / "log", "ok": tmp_path / "ok"}
    (project / "kid.yaml").write_text(KID.format(**names))
    (project / "outer.yaml").write_text(OUTER.format(**names))


def _children(run):
    return json.loads(run("flowstone", "status", "--last", "--format", "json").stdout)["children"]


def test_a_nested_workflow_that_is_run_afresh_is_a_new_run(run, nested, ran):
    assert run("flowstone", "run", "outer.yaml").returncode == 1
    assert ran() == ["k", "z"]
    assert run("flowstone", "resume", "--last").returncode == 1
    assert ran() == ["z"]
    assert run("flowstone", "resume", "--last", "--from", "n").returncode == 1
    assert ran() == ["k", "z"]
    assert run("flowstone", "resume", "--last", "--only", "n").returncode == 1  # z still has failed
    assert ran() == ["k"]
    children = _children(run)
    assert [child["status"] for child in children] == ["succeeded"] * 3
    assert len({child["run"] for child in children}) == 3


def test_a_nested_workflow_that_is_unchanged_is_taken_over(run, nested, tmp_path, ran):
    assert run("flowstone", "run", "outer.yaml").returncode == 1
    ran()
    (tmp_path / "ok").touch()
    again = run("flowstone", "run", "outer.yaml", "--reuse", _last(run), "--yes")
    assert "n  reused" in again.stderr
    assert ran() == ["z"]
