"""Workflows that compose workflows, as a user sees them (reference, "Child workflows"; akm facts 3.1, 3.2, 20)."""

import json
import os
import signal
import subprocess
import sys
import time
from types import SimpleNamespace

import pytest

from flowstone.testing.model_server import Answer, ModelServer


def compose(akm, name, *steps):
    """Write a workflow in YAML; a step is (id, what stands below it)."""
    listed = "".join(f"      - id: {step}\n        {text}\n" for step, text in steps)
    return akm.write(
        f"bundle/workflows/{name}.yml",
        f"name: {name}\non: {{ workflow_dispatch: {{}} }}\njobs:\n  j:\n    runs-on: [self-hosted]\n    steps:\n{listed}",
    )


@pytest.fixture
def judge(akm):
    """A judge that gives no verdict until it is `fit`."""
    state = SimpleNamespace(fit=False)

    def verdict(asked):
        return Answer('{"complete": true, "missing": [], "feedback": ""}') if state.fit else Answer("x", status=400)

    with ModelServer(verdict) as server:
        state.url = server.endpoint
        yield state


def gated(akm, name, url):
    """A workflow whose only step has a rubric and a judge at `url`."""
    akm.write(
        f"bundle/workflows/{name}.md",
        f"---\ntype: workflow\nupdated: 2026-01-01\nsteps:\n  - id: k\n"
        f'    unit: {{ exec: {{ command: [sh, -c, "echo {name} >> ran"] }} }}\n'
        f"---\n\n# {name}\n\n## k\n\nDo k.\n\n### gate\n\nGood enough?\n",
    )
    engine = {"kind": "llm", "endpoint": url, "model": "m"}
    akm.json("config", "set", "engines.j", json.dumps(engine))
    akm.json("config", "set", "workflow.judgeEngine", "j")


def ran(akm):
    path = akm.folder / "project" / "ran"
    return path.read_text().split() if path.exists() else []


def run_id(akm, *argv, code=0):
    return akm.json("workflow", "run", *argv, code=code)["run"]["id"]


def children(akm, run):
    return akm.json("workflow", "status", run).get("children", [])


def test_a_child_without_outputs_exports_its_run_and_status(akm):
    akm.workflow("kid", ("k", "echo hi"))
    compose(akm, "w", ("c", "uses: workflows/kid"))
    status = akm.json("workflow", "status", run_id(akm, "workflows/w"))
    (child,) = status["children"]
    assert status["workflow"]["steps"][0]["evidence"]["output"] == {"runId": child["runId"], "status": "completed"}
    assert (child["stepId"], child["spawnedByUnitId"], child["currentStepId"]) == ("c", "c:solo", None)
    assert "children" not in child


def test_the_child_is_frozen_whole_into_the_run(akm):
    akm.workflow("kid", ("k", "echo kid >> ran"))
    compose(akm, "w", ("a", "run: echo first"), ("c", "uses: workflows/kid"))
    run = run_id(akm, "workflows/w", "--max-steps", "1")
    (akm.folder / "bundle/workflows/kid.md").unlink()
    assert akm.json("workflow", "run", run)["run"]["status"] == "completed"
    assert ran(akm) == ["kid"]


def test_a_source_that_is_edited_before_the_run_is_published_publishes_nothing(akm, monkeypatch):
    """Here the edit comes right after the plan was frozen, where no command can be held up."""
    from flowstone.api import Flowstone
    from flowstone.errors import FreezeError

    akm.workflow("deep", ("k", "echo hi"))
    compose(akm, "kid", ("d", "uses: tasks/t"))
    task = akm.write("bundle/tasks/t.yml", "version: 4\nuses: workflows/deep\n")
    compose(akm, "w", ("c", "uses: workflows/kid"))
    env = {f"AKM_{name.upper()}_DIR": str(akm.folder / name) for name in ("config", "data", "state", "cache", "bundle")}
    for path in (task, akm.folder / "bundle/workflows/deep.md"):
        with Flowstone(str(akm.folder / "project"), {**env, "PATH": os.environ["PATH"]}) as flow:
            compiling, before = flow.session.compiling, path.read_text()

            def freeze(workflow, own=compiling.freeze, path=path, before=before):
                frozen = own(workflow)
                path.write_text(before + "\n")
                return frozen

            monkeypatch.setattr(compiling, "freeze", freeze)
            with pytest.raises(FreezeError, match="changed while the plan") as refused:
                flow.start("workflows/w")
            assert refused.value.code == "WORKFLOW_SOURCE_CHANGED"
            assert os.path.basename(path) in refused.value.message
            assert flow.list() == []
        path.write_text(before)


def test_a_blocked_child_names_the_commands_and_they_work(akm, judge):
    gated(akm, "kid", judge.url)
    compose(akm, "w", ("c", "uses: workflows/kid"), ("z", "run: echo after"))
    envelope = akm.json("workflow", "run", "workflows/w", code=1)
    run, blocked = envelope["run"]["id"], envelope["childBlocked"]
    assert (envelope["run"]["status"], envelope["ok"], "judgeFailure" in envelope) == ("blocked", False, False)
    child = blocked["childRunId"]
    assert blocked == {
        "stepId": "c",
        "childRunId": child,
        "childRef": "bundle//workflows/kid",
        "resume": f"akm workflow resume {child}",
        "then": f"akm workflow resume {run} && akm workflow run {run}",
    }
    status = akm.json("workflow", "status", run, "--units")
    notes = status["workflow"]["steps"][0]["notes"]
    commands = [line for line in notes.splitlines() if line.startswith("akm ")]
    assert commands == [f"akm workflow resume {child}", f"akm workflow resume {run}", f"akm workflow run {run}"]
    assert 'at step "k"' in notes
    assert status["units"][0]["failureReason"] == "child_workflow_blocked"
    assert status["children"][0]["resume"] == {"command": blocked["resume"], "then": blocked["then"]}
    judge.fit = True
    for line in commands[:-1]:
        akm.json(*line.split()[1:])
    assert akm.json(*commands[-1].split()[1:])["run"]["status"] == "completed"
    assert ran(akm) == ["kid"]  # only the judge was asked again
    assert len(children(akm, run)) == 1


def test_a_block_three_levels_down_is_cleared_by_its_commands(akm, judge):
    gated(akm, "kid", judge.url)
    compose(akm, "mid", ("m", "uses: workflows/kid"))
    compose(akm, "top", ("t", "uses: workflows/mid"))
    compose(akm, "w", ("c", "uses: workflows/top"))
    run = run_id(akm, "workflows/w", code=1)
    (top,) = children(akm, run)
    (mid,) = top["children"]
    (kid,) = mid["children"]
    assert {top["status"], mid["status"], kid["status"]} == {"blocked"}
    assert kid["resume"]["then"] == f"akm workflow resume {run} && akm workflow run {run}"
    notes = akm.json("workflow", "status", run)["workflow"]["steps"][0]["notes"]
    commands = [line for line in notes.splitlines() if line.startswith("akm ")]
    order = [kid["runId"], mid["runId"], top["runId"], run]
    assert commands == [*(f"akm workflow resume {one}" for one in order), f"akm workflow run {run}"]
    text = akm("workflow", "status", run, "--format", "text").stdout
    assert (
        f"\n      ⚠ {kid['runId']}  blocked  bundle//workflows/kid  (step m)\n        resume: akm workflow resume "
        in text
    )
    judge.fit = True
    for line in commands[:-1]:
        akm.json(*line.split()[1:])
    assert akm.json(*commands[-1].split()[1:])["run"]["status"] == "completed"


def test_resuming_the_parent_alone_leaves_a_failed_child_as_it_is(akm):
    akm.workflow("kid", ("k", "echo k >> ran; test -e ok"))
    compose(akm, "w", ("c", "uses: workflows/kid"))
    run = run_id(akm, "workflows/w", code=1)
    notes = akm.json("workflow", "status", run)["workflow"]["steps"][0]["notes"]
    (child,) = children(akm, run)
    assert all(word in notes for word in (child["runId"], "bundle//workflows/kid", '"k"', "akm workflow status"))
    akm.json("workflow", "resume", run)
    assert akm.json("workflow", "run", run, code=1)["run"]["status"] == "failed"
    assert ran(akm) == ["k"]


def test_a_child_that_a_person_has_brought_to_its_end_is_taken_over(akm):
    akm.workflow("kid", ("k", "echo k >> ran; test -e ok"))
    compose(akm, "w", ("c", "uses: workflows/kid"))
    run = run_id(akm, "workflows/w", code=1)
    (child,) = children(akm, run)
    akm.write("project/ok", "")
    akm.json("workflow", "resume", child["runId"])
    assert akm.json("workflow", "run", child["runId"])["run"]["status"] == "completed"
    akm.json("workflow", "resume", run)
    assert akm.json("workflow", "run", run)["run"]["status"] == "completed"
    assert ran(akm) == ["k", "k"]


def test_a_child_that_was_given_up_has_failed(akm):
    akm.workflow("kid", ("k", "sleep 30"))
    compose(akm, "w", ("c", "uses: workflows/kid"))
    run = run_id(akm, "workflows/w", "--timeout", "800ms", code=1)
    (child,) = children(akm, run)
    assert child["status"] == "active"
    akm.json("workflow", "abandon", child["runId"])
    assert akm.json("workflow", "run", run, code=1)["run"]["status"] == "failed"


def test_ctrl_c_stops_the_child_too_and_both_go_on(akm, environment):
    akm.workflow("kid", ("k", "echo $$ > pid; test -e ok || exec sleep 60"))
    compose(akm, "w", ("c", "uses: workflows/kid"))
    code = "from flowstone.cli.akm.main import main; main()"
    driver = subprocess.Popen(
        [sys.executable, "-c", code, "workflow", "run", "workflows/w"],
        cwd=akm.folder / "project",
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    pid = akm.folder / "project/pid"
    deadline = time.monotonic() + 30
    while not (pid.exists() and pid.read_text().strip()) and time.monotonic() < deadline:
        time.sleep(0.01)
    driver.send_signal(signal.SIGINT)
    envelope = json.loads(driver.communicate(timeout=30)[0])
    assert (driver.returncode, envelope["aborted"], envelope["run"]["status"]) == (130, True, "active")
    with pytest.raises(ProcessLookupError):
        os.kill(int(pid.read_text()), 0)
    run = envelope["run"]["id"]
    (child,) = children(akm, run)
    assert child["status"] == "active"
    akm.write("project/ok", "")
    assert akm.json("workflow", "run", run)["run"]["status"] == "completed"
    assert [one["runId"] for one in children(akm, run)] == [child["runId"]]


def test_a_diamond_embeds_two_copies_and_runs_both(akm):
    akm.workflow("kid", ("k", "echo kid >> ran"))
    compose(akm, "left", ("l", "uses: workflows/kid"))
    compose(akm, "right", ("r", "uses: workflows/kid"))
    compose(akm, "w", ("a", "uses: workflows/left"), ("b", "uses: workflows/right"))
    plan = akm.json("workflow", "plan", "workflows/w")
    inner = [step["expansion"]["steps"][0]["expansion"] for step in plan["steps"]]
    assert [one["childRef"] for one in inner] == ["bundle//workflows/kid"] * 2
    assert inner[0]["childPlanHash"] == inner[1]["childPlanHash"]
    run = run_id(akm, "workflows/w")
    assert ran(akm) == ["kid", "kid"]
    left, right = children(akm, run)
    assert left["children"][0]["runId"] != right["children"][0]["runId"]


def test_the_plan_shows_the_whole_child_and_reads_its_sources(akm):
    akm.workflow("kid", ("k", "echo $AKM_PARAMS"), head="params: { n: { type: integer }, s: { type: string } }\n")
    akm.write(
        "bundle/tasks/t.yml", "version: 4\nuses: workflows/kid\ninputs:\n  n: { type: integer, required: true }\n"
    )
    compose(akm, "w", ("a", "run: echo 4"), ("c", "uses: tasks/t\n        with: { n: { from: steps.a.output } }"))
    plan = akm.json("workflow", "plan", "workflows/w")
    step = plan["steps"][1]
    assert (step["targetKind"], step["inputs"]) == ("child-workflow", [])
    assert step["inputBindings"] == [{"kind": "reference", "name": "n", "from": "steps.a.output"}]
    expansion = step["expansion"]
    assert {key: expansion[key] for key in ("via", "childRef", "childVia", "childTaskRef", "childOutputs")} == {
        "via": "child",
        "childRef": "bundle//workflows/kid",
        "childVia": "task",
        "childTaskRef": "bundle//tasks/t",
        "childOutputs": ["runId", "status"],
    }
    assert [one["stepId"] for one in expansion["steps"]] == ["k"]
    read = [os.path.basename(entry["path"]) for entry in plan["sourceReadSet"]]
    assert read == ["w.yml", "t.yml", "kid.md"]


def test_a_reference_must_fit_the_inputs_of_the_task_in_front(akm):
    akm.workflow("kid", ("k", "echo kid >> ran"), head="params: { n: {} }\n")
    akm.write(
        "bundle/tasks/t.yml", "version: 4\nuses: workflows/kid\ninputs:\n  n: { type: integer, required: true }\n"
    )
    compose(akm, "w", ("a", "run: echo word"), ("c", "uses: tasks/t\n        with: { n: { from: steps.a.output } }"))
    status = akm.json("workflow", "status", run_id(akm, "workflows/w", code=1), "--units")
    assert status["units"][1]["failureReason"] == "child_workflow_publish_failed"
    assert "with.n" in status["workflow"]["steps"][1]["notes"]
    assert ("children" in status, ran(akm)) == (False, [])


@pytest.mark.parametrize(
    ("text", "code", "said"),
    [
        ("uses: workflows/kid\n        with: { n: word }", "INPUT_BINDING_INVALID", 'Step "c" (workflows/kid): with.n'),
        ("uses: workflows/kid\n        with: { q: 1 }", "INPUT_BINDING_INVALID", "with.q"),
        ("uses: tasks/t\n        with: {}", "COMPOSITION_INVALID", "declares no inputs"),
        ("uses: tasks/u", "INPUT_BINDING_INVALID", "with.n is required"),
        ("uses: tasks/v", "INPUT_BINDING_INVALID", "with.x is none of the declared params: n"),
        ("uses: tasks/none", "ASSET_NOT_FOUND", "Task not found for ref: tasks/none"),
        ("uses: workflows/none", "ASSET_NOT_FOUND", "Workflow not found for ref: workflows/none"),
    ],
)
def test_what_cannot_be_composed_is_refused_before_anything_is_written(akm, text, code, said):
    akm.workflow("kid", ("k", "echo kid >> ran"), head="params: { n: { type: integer } }\n")
    akm.write("bundle/tasks/t.yml", "version: 4\nuses: workflows/kid\n")
    akm.write(
        "bundle/tasks/u.yml", "version: 4\nuses: workflows/kid\ninputs: { n: { type: integer, required: true } }\n"
    )
    akm.write("bundle/tasks/v.yml", "version: 4\nuses: workflows/kid\ninputs: { x: { type: integer, default: 1 } }\n")
    compose(akm, "w", ("c", text))
    done = akm("workflow", "run", "workflows/w")
    refusal = json.loads(done.stderr[done.stderr.index("{") :])
    assert said in refusal["error"]
    assert (refusal["code"], done.returncode) == (code, 1 if code == "ASSET_NOT_FOUND" else 2)
    assert akm.json("workflow", "list", "--children")["runs"] == []


def test_children_are_listed_when_asked_for_and_never_attached_to(akm):
    akm.workflow("kid", ("k", "test -e ok || sleep 30"))
    compose(akm, "w", ("c", "uses: workflows/kid"))
    run = run_id(akm, "workflows/w", "--timeout", "800ms", code=1)
    assert [one["id"] for one in akm.json("workflow", "list")["runs"]] == [run]
    listed = akm.json("workflow", "list", "--children")["runs"]
    assert {one.get("parentRunId") for one in listed} == {None, run}
    akm.write("project/ok", "")
    other = akm.json("workflow", "run", "workflows/kid")
    assert "resumed" not in other
    assert "parentRunId" not in other["run"]


def test_the_budget_of_a_child_is_its_own(akm):
    akm.workflow("kid", ("k", "true"), ("l", "true"), head="budget: { max_units: 1 }\n")
    compose(akm, "w", ("a", "run: echo 1"), ("b", "run: echo 2"), ("c", "uses: workflows/kid"))
    status = akm.json("workflow", "status", run_id(akm, "workflows/w", code=1))
    assert [step["status"] for step in status["workflow"]["steps"]] == ["completed", "completed", "failed"]
    assert "budget exceeded" in status["workflow"]["steps"][2]["notes"]


def test_a_composing_step_that_is_run_afresh_starts_another_child(akm, run):
    akm.workflow("kid", ("k", "echo kid >> ran"))
    compose(akm, "w", ("a", "run: echo 1"), ("c", "uses: workflows/kid"))
    first = run_id(akm, "workflows/w")
    for words in (("--from", "c"), ("--only", "c"), ("--from", "a")):
        assert run("flowstone", "resume", first, *words).returncode == 0
    assert ran(akm) == ["kid"] * 4
    assert [one["status"] for one in children(akm, first)] == ["completed"] * 4


def test_env_of_a_composing_step_has_no_effect_and_says_so(akm):
    akm.workflow("kid", ("k", 'echo "[$COLOUR]" >> ran'))
    compose(akm, "w", ("c", "uses: workflows/kid\n        env: { COLOUR: red }"))
    envelope = akm.json("workflow", "run", "workflows/w")
    assert any("env has no effect" in text for text in envelope["warnings"])
    assert ran(akm) == ["[]"]


def test_flowstone_goes_on_with_what_it_says(akm, run, judge):
    gated(akm, "kid", judge.url)
    compose(akm, "mid", ("m", "uses: workflows/kid"))
    compose(akm, "w", ("c", "uses: workflows/mid"))
    assert run("flowstone", "run", "workflows/w").returncode == 1
    shown = run("flowstone", "status", "--last").stdout
    (line,) = [line for line in shown.splitlines() if line.startswith("go on with: ")]
    commands = line.removeprefix("go on with: ").split(" && ")
    assert len(commands) == 3
    judge.fit = True
    for command in commands:
        done = run(*command.split())
        assert done.returncode == 0, done.stderr
    assert json.loads(run("flowstone", "status", "--last", "--format", "json").stdout)["status"] == "succeeded"
    assert ran(akm) == ["kid"]


def test_a_child_that_somebody_else_drives_is_busy(akm, environment):
    akm.workflow("kid", ("k", "echo >> begun; test -e ok || sleep 60"))
    compose(akm, "w", ("c", "uses: workflows/kid"))
    run = run_id(akm, "workflows/w", "--timeout", "1500ms", code=1)
    (child,) = children(akm, run)
    begun = akm.folder / "project/begun"
    begun.unlink()
    code = "from flowstone.cli.akm.main import main; main()"
    other = subprocess.Popen(
        [sys.executable, "-c", code, "workflow", "run", child["runId"]],
        cwd=akm.folder / "project",
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        deadline = time.monotonic() + 30
        while not begun.exists() and time.monotonic() < deadline:
            time.sleep(0.01)
        assert akm.json("workflow", "run", run, code=1)["run"]["status"] == "failed"
    finally:
        other.send_signal(signal.SIGINT)
        other.wait(30)
    status = akm.json("workflow", "status", run, "--units")
    assert status["units"][0]["failureReason"] == "child_workflow_busy"
    akm.write("project/ok", "")
    akm.json("workflow", "resume", run)
    assert akm.json("workflow", "run", run)["run"]["status"] == "completed"
