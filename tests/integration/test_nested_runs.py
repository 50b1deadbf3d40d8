"""Workflows inside workflows, run: linked, resumable, stopped with their parent, and nothing leaks."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import flowstone
from flowstone.api import Flowstone, Given
from flowstone.errors import CompileError, DigestMismatch, IllegalTransition

SOURCE = str(Path(flowstone.__file__).parents[1])
HEAD = "apiVersion: orun.dev/v1\nkind: Workflow\n"
SHELL = '["/bin/sh", "-c", "{}"]'


def workflow(name: str, steps: str, more: str = "") -> str:
    return f"{HEAD}metadata: {{ name: {name} }}\n{more}steps:\n{steps}"


def run_step(name: str, script: str, more: str = "") -> str:
    return f"  - name: {name}\n    run: {SHELL.format(script)}\n    cwd: .\n{more}"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def flow(folder):
    env = {"PATH": os.environ["PATH"], "HOME": str(folder), "XDG_DATA_HOME": str(folder / "data")}
    with Flowstone(str(folder), env, language="orun") as flow:
        yield flow


class Watch:
    """An observer that keeps what it is told of."""

    def __init__(self) -> None:
        self.said: list[str] = []
        self.below: list[str] = []

    def recorded(self, state, events) -> None:
        pass

    def nested(self, path, state, events) -> None:
        self.below += [f"{path}: {type(event).__name__}" for event in events]

    def line(self, step, unit, text) -> None:
        self.said.append(f"{step} | {text}")

    def warned(self, text) -> None:
        raise AssertionError(text)


def children(flow, run_id):
    return [child.row.record for child in flow.status(run_id).children]


def test_a_child_is_a_run_of_its_own_with_its_own_files(flow, folder):
    (folder / "w.yaml").write_text(workflow("top", "  - { name: s, workflow: kid.yaml }\n"))
    (folder / "kid.yaml").write_text(workflow("kid", run_step("c", "echo made"), 'outputs: { o: "steps.c.stdout" }\n'))
    report = flow.run("w.yaml")
    assert report.state.steps["s"].result.value == {"o": "made\n"}
    (child,) = children(flow, report.row.record.id)
    assert (child.parent_run, child.parent_unit) == (report.row.record.id, "s:solo")
    assert report.state.steps["s"].result.child_run == child.id
    for name in ("metadata.json", "steps/c.json", "result.json"):
        assert (folder / ".orun" / "wfruns" / child.id / name).is_file()
    assert [row.record.id for row in flow.list()] == [report.row.record.id]


def test_lines_and_events_of_every_level_name_the_way_to_it(flow, folder):
    (folder / "w.yaml").write_text(workflow("top", "  - { name: a, workflow: sub/mid.yaml }\n"))
    (folder / "sub").mkdir()
    (folder / "sub" / "mid.yaml").write_text(workflow("mid", "  - { name: b, workflow: leaf.yaml }\n"))
    (folder / "sub" / "leaf.yaml").write_text(workflow("leaf", run_step("c", "echo deep")))
    watch = Watch()
    started = flow.start("w.yaml")
    assert flow.drive(started.run_id, observer=watch, lines=True).state.status == "succeeded"
    assert watch.said == ["a/b/c | deep"]
    assert "a/b: StepClosed" in watch.below
    assert "a: StepClosed" in watch.below


def test_the_first_error_of_the_innermost_child_is_told(flow, folder):
    (folder / "w.yaml").write_text(workflow("top", "  - { name: a, workflow: mid.yaml }\n"))
    (folder / "mid.yaml").write_text(workflow("mid", "  - { name: b, workflow: leaf.yaml }\n"))
    (folder / "leaf.yaml").write_text(workflow("leaf", run_step("c", "echo why >&2; exit 4")))
    step = flow.run("w.yaml").state.steps["a"]
    assert step.reason == "child_workflow_failed"
    assert step.error.startswith("workflow mid.yaml: step b: workflow leaf.yaml: step c: run: /bin/sh exited 4")
    assert "why" in step.error


def test_a_resume_goes_on_with_the_same_child(flow, folder):
    (folder / "w.yaml").write_text(workflow("top", "  - { name: s, workflow: kid.yaml }\n"))
    steps = run_step("c", "echo once >> count") + run_step("d", "test -e ready", "    needs: [c]\n")
    (folder / "kid.yaml").write_text(workflow("kid", steps))
    run_id = flow.run("w.yaml").row.record.id
    (folder / "ready").touch()
    assert flow.drive(run_id, reopen=True).state.status == "succeeded"
    assert (folder / "count").read_text() == "once\n"
    assert len(children(flow, run_id)) == 1


def test_a_retry_runs_the_whole_child_again(flow, folder):
    retry = "    retry: { maxRetries: 3, baseDelay: 1ms }\n"
    (folder / "w.yaml").write_text(workflow("top", f"  - name: s\n    workflow: kid.yaml\n{retry}"))
    steps = run_step("c", "echo again >> count") + run_step("d", "test $(wc -l < count) = 3", "    needs: [c]\n")
    (folder / "kid.yaml").write_text(workflow("kid", steps))
    report = flow.run("w.yaml")
    assert report.state.status == "succeeded"
    assert (folder / "count").read_text() == "again\n" * 3
    assert len(children(flow, report.row.record.id)) == 3


def test_a_child_that_changed_is_refused_on_resume(flow, folder):
    (folder / "w.yaml").write_text(workflow("top", "  - { name: s, workflow: kid.yaml }\n"))
    (folder / "kid.yaml").write_text(workflow("kid", run_step("c", "false")))
    run_id = flow.run("w.yaml").row.record.id
    (folder / "kid.yaml").write_text(workflow("kid", run_step("c", "true")))
    with Flowstone(str(folder), flow.wiring.env, language="orun") as later:
        with pytest.raises(DigestMismatch, match=r"kid\.yaml: workflow digest changed \(sha256:"):
            later.check_source(run_id)
        with pytest.raises(DigestMismatch):
            later.drive(run_id, reopen=True)


def test_only_the_parent_drives_a_child(flow, folder):
    (folder / "w.yaml").write_text(workflow("top", "  - { name: s, workflow: kid.yaml }\n"))
    (folder / "kid.yaml").write_text(workflow("kid", run_step("c", "false")))
    run_id = flow.run("w.yaml").row.record.id
    (child,) = children(flow, run_id)
    for verb in (flow.resume, flow.abandon, lambda run: flow.drive(run, reopen=True)):
        with pytest.raises(IllegalTransition, match=f"nested in run {run_id}"):
            verb(child.id)


def test_one_slot_above_and_one_below_never_wait_for_each_other(flow, folder):
    one = "maxParallel: 1\n"
    script = "mkdir lock || touch over; sleep .05; rmdir lock"
    steps = "  - { name: s, workflow: kid.yaml }\n" + run_step("a", script) + run_step("b", script)
    (folder / "w.yaml").write_text(workflow("top", steps, one))
    (folder / "kid.yaml").write_text(workflow("kid", run_step("c", script) + run_step("d", script), one))
    assert flow.run("w.yaml").state.status == "succeeded"
    assert not (folder / "over").exists()


def test_what_is_secret_above_is_secret_below(flow, folder):
    more = "inputs: { key: { type: string, secret: true, required: true } }\n"
    step = "  - name: s\n    workflow: kid.yaml\n    with: { word: '{{ inputs.key }}' }\n"
    (folder / "w.yaml").write_text(workflow("top", step, more))
    inputs = 'inputs: { word: { type: string } }\noutputs: { o: "inputs.word" }\n'
    (folder / "kid.yaml").write_text(workflow("kid", run_step("c", "echo {{ inputs.word }}; test -e ready"), inputs))
    watch = Watch()
    given = Given(values={"key": "hunter2-hunter2"})
    run_id = flow.start("w.yaml", given).run_id
    flow.drive(run_id, given, observer=watch, lines=True)
    (folder / "ready").touch()
    report = flow.drive(run_id, given, reopen=True)
    assert report.state.steps["s"].result.value == {"o": "[REDACTED]"}
    assert watch.said == ["s/c | [REDACTED]"]
    assert len(children(flow, run_id)) == 1
    flow.close()
    kept = [path for path in (folder / ".orun").rglob("*") if path.is_file()]
    assert not [path for path in kept if b"hunter2" in path.read_bytes()]


def test_connections_of_a_child_must_be_declared_above(flow, folder):
    (folder / "w.yaml").write_text(workflow("top", "  - { name: s, workflow: kid.yaml }\n"))
    step = "  - name: h\n    action: http.request\n    connection: gh\n    with: { url: 'http://127.0.0.1:1' }\n"
    (folder / "kid.yaml").write_text(workflow("kid", step, "connections: { gh: { type: http.bearer } }\n"))
    with pytest.raises(CompileError, match=r'step s: workflow kid\.yaml: it uses connection "gh"'):
        flow.start("w.yaml")
    (folder / "w.yaml").write_text(
        workflow("top", "  - { name: s, workflow: kid.yaml }\n", "connections: { gh: { type: http.bearer } }\n")
    )
    with pytest.raises(Exception, match='step s: connection "gh" was not granted'):
        flow.start("w.yaml")
    assert flow.list() == []


def test_inputs_that_do_not_fit_start_no_child(flow, folder):
    step = "  - name: s\n    workflow: kid.yaml\n    with: { n: \"{{ 'many' }}\" }\n"
    (folder / "w.yaml").write_text(workflow("top", step))
    (folder / "kid.yaml").write_text(workflow("kid", run_step("c", "touch ran"), "inputs: { n: { type: integer } }\n"))
    report = flow.run("w.yaml")
    assert report.state.steps["s"].reason == "child_workflow_publish_failed"
    assert "inputs.n" in report.state.steps["s"].error
    assert not (folder / "ran").exists()


def test_abandoning_a_parent_abandons_its_children(flow, folder):
    step = "  - { name: s, workflow: kid.yaml, timeout: 200ms }\n  - { name: t, run: [sleep, '30'] }\n"
    (folder / "w.yaml").write_text(workflow("top", step))
    (folder / "kid.yaml").write_text(workflow("kid", run_step("c", "sleep 30")))
    run_id = flow.start("w.yaml").run_id
    assert flow.drive(run_id, options=flow.drive_options(timeout_ms=900)).end.halt == "interrupted"
    (child,) = flow.status(run_id).children
    assert child.row.summary.status == "active"
    flow.abandon(run_id)
    assert [child.row.summary.status for child in flow.status(run_id).children] == ["abandoned"]


def test_a_signal_stops_the_child_and_a_resume_goes_on(folder):
    (folder / "w.yaml").write_text(workflow("top", "  - { name: s, workflow: kid.yaml }\n"))
    steps = run_step("c", "echo c >> count") + run_step("d", "touch begun; test -e go || sleep 30", "    needs: [c]\n")
    (folder / "kid.yaml").write_text(workflow("kid", steps))
    code = "from flowstone.cli.orun.main import main; main()"
    argv = [sys.executable, "-c", code, "workflow", "run", "w.yaml"]
    env = {**os.environ, "PYTHONPATH": SOURCE, "HOME": str(folder)}
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True, env=env) as driver:
        wait_for(folder / "begun")
        driver.send_signal(signal.SIGTERM)
        out, _ = driver.communicate(timeout=20)
    assert driver.returncode == 143
    run_id = out.rpartition("(exec ")[2].partition(")")[0]
    (folder / "go").touch()
    again = [*argv, "--resume", run_id]
    ended = subprocess.run(again, capture_output=True, text=True, timeout=20, check=False, env=env)
    assert ended.returncode == 0, ended.stderr
    assert (folder / "count").read_text() == "c\n"


def wait_for(path: Path) -> None:
    deadline = time.monotonic() + 20
    while not path.exists():
        assert time.monotonic() < deadline
        time.sleep(0.02)
