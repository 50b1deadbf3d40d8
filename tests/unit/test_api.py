"""The facade: compile, lint, plan, run with a callback, status, resume, abandon (both kinds of runs)."""

from __future__ import annotations

import pytest

from flowstone.api import Flowstone, Given
from flowstone.errors import CompileError, FreezeError, IllegalTransition, SourceError, UnknownRun
from flowstone.run.events import RunClosed, RunStatus, StepClosed

SPINE = """---
type: workflow
description: Two steps
params:
  word: { type: string, default: hello }
steps:
  - id: say
    unit: { exec: { command: [sh, -c, 'printf %s "$AKM_PARAMS"'] } }
  - id: check
    inputs: [steps.say.output]
    unit: { exec: { command: [test, -e, ready] } }
outputs:
  said: { from: steps.say.output }
---
## say
Say it.
## check
Check it.
"""
DAG = """apiVersion: orun.dev/v1
kind: Workflow
metadata: {name: two}
inputs: {word: {type: string, required: true}}
outputs: {said: "steps.say.outputs.text"}
steps:
  - {name: say, run: [echo, "{{ inputs.word }}"], outputs: {text: "stdout.trim()"}}
  - {name: check, needs: [say], run: [test, -e, ready], cwd: .}
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    (tmp_path / "flow.md").write_text(SPINE)
    (tmp_path / "flow.yaml").write_text(DAG)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def flow(folder):
    env = {"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": str(folder), "XDG_DATA_HOME": str(folder / "data")}
    with Flowstone(str(folder), env) as flow:
        yield flow


FILES = [("flow.md", {"word": "hi"}, '{"word":"hi"}'), ("flow.yaml", {"word": "hi"}, "hi")]


@pytest.mark.parametrize(("file", "values", "said"), FILES)
def test_a_run_from_its_file_to_its_outputs(flow, folder, file, values, said):
    (folder / "ready").touch()
    events = []
    report = flow.run(file, values=values, on_event=events.append)
    assert report.state.status is RunStatus.SUCCEEDED
    assert report.state.outputs == {"said": said}
    assert [event.step for event in events if isinstance(event, StepClosed)] == ["say", "check"]
    assert isinstance(events[-1], RunClosed)
    seen = flow.status(report.row.record.id)
    assert seen.state.outputs == {"said": said}
    assert [row.record.id for row in flow.list()] == [flow.last()] == [report.row.record.id]
    assert [event for _, _, event in flow.events(report.row.record.id)] == events


@pytest.mark.parametrize(("file", "values", "said"), FILES)
def test_a_failed_run_is_taken_up_again_where_it_stopped(flow, folder, file, values, said):
    report = flow.run(file, values=values)
    assert report.state.status is RunStatus.FAILED
    run_id = report.row.record.id
    with pytest.raises(IllegalTransition):
        flow.drive(run_id)
    (folder / "ready").touch()
    again = flow.drive(run_id, reopen=True)
    assert [executed.step for executed in again.executed] == ["check"]
    assert again.state.outputs == {"said": said}
    with pytest.raises(IllegalTransition, match="completed"):
        flow.resume(run_id)


def test_an_edit_after_the_start_changes_nothing_in_a_run(flow, folder):
    run_id = flow.start("flow.md", Given(values={"word": "hi"})).run_id
    (folder / "flow.md").write_text(SPINE.replace("test, -e, ready", "false"))
    (folder / "ready").touch()
    assert flow.drive(run_id, Given()).state.status is RunStatus.SUCCEEDED
    assert flow.check_source(run_id)


def test_an_active_run_of_a_workflow_is_found_again(flow):
    first = flow.start("flow.md", Given(values={"word": "hi"}))
    assert flow.start("flow.md", new=False).run_id == first.run_id
    assert flow.start("flow.md", new=False).resumed
    assert flow.start("flow.md").run_id != first.run_id
    with pytest.raises(IllegalTransition, match="can only be set on a new run"):
        flow.start("flow.md", Given(values={"word": "x"}), new=False)


def test_a_run_that_was_given_up(flow):
    run_id = flow.start("flow.md").run_id
    assert flow.abandon(run_id).state.status is RunStatus.ABANDONED
    with pytest.raises(IllegalTransition):
        flow.abandon(run_id)
    assert flow.resume(run_id).state.status is RunStatus.ACTIVE


def test_mistakes_are_told_and_nothing_is_started(flow, folder):
    (folder / "bad.md").write_text(SPINE.replace("unit:", "unti:"))
    assert flow.compile("bad.md").diagnostics
    assert [bool(found) for _, found in flow.lint(["bad.md", "flow.md", "nowhere.md"])] == [True, False, True]
    with pytest.raises(CompileError) as caught:
        flow.start("bad.md")
    assert caught.value.diagnostics[0].place.line > 1
    with pytest.raises(SourceError):
        flow.run("nowhere.md")
    with pytest.raises(UnknownRun):
        flow.last()
    assert flow.list() == []


def test_planning_writes_nothing(flow, folder):
    before = sorted(folder.rglob("*"))
    assert flow.plan("flow.md").hash == flow.plan("flow.md").hash
    flow.plan("flow.yaml")
    assert sorted(folder.rglob("*")) == before


def test_a_source_that_changes_while_it_is_frozen_publishes_nothing(flow, folder, monkeypatch):
    real = flow.session.compiling.freeze

    def freezing(workflow):
        (folder / "flow.md").write_text(SPINE + "\n")
        return real(workflow)

    monkeypatch.setattr(flow.session.compiling, "freeze", freezing)
    with pytest.raises(FreezeError, match="changed while") as caught:
        flow.start("flow.md")
    assert caught.value.code == "WORKFLOW_SOURCE_CHANGED"
    assert flow.list() == []
