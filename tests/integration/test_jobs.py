"""Jobs, run in their real parts: pins that hold, workflows that are gone on with, grants, seals, answers from elsewhere."""

from __future__ import annotations

import json
import os
import threading
from pathlib import Path

import pytest

from flowstone.api import Flowstone, Given
from flowstone.api.hooks import pin_hooks, start_hooks, verify_hooks
from flowstone.api.jobs import plan_job, start_planned
from flowstone.errors import DigestMismatch, IllegalTransition, InputError, PlanVersionError, SourceError, UsageError
from tests.integration.wire import WireServer, page

JOB = "apiVersion: orun.dev/v1\nkind: Job\nmetadata: { name: deploy }\nsteps:\n"
FLOW = "apiVersion: orun.dev/v1\nkind: Workflow\nmetadata: { name: flow }\n"
COUNTING = """\
inputs: { here: { type: string, required: true } }
steps:
  - { name: first, run: [sh, -c, "echo first >> {{ inputs.here }}/ran"] }
  - { name: second, needs: [first], run: [sh, -c, "echo second >> {{ inputs.here }}/ran; test -e {{ inputs.here }}/ok"] }
"""


@pytest.fixture
def flow(tmp_path):
    env = {
        "PATH": os.environ["PATH"],
        "HOME": str(tmp_path),
        "XDG_DATA_HOME": str(tmp_path / "data"),
        "TOKEN": "s3cr3tvalue",
    }
    with Flowstone(str(tmp_path), env) as flow:
        yield flow


def write(flow: Flowstone, name: str, text: str) -> Path:
    path = Path(flow.wiring.cwd, name)
    path.parent.mkdir(exist_ok=True, parents=True)
    path.write_text(text)
    return path


def plan(flow: Flowstone, steps: str, job: str = "job.yaml", out: str = "plan.json") -> str:
    """Plan a job with these steps; returns the text of the plan file."""
    write(flow, job, JOB + steps)
    text = plan_job(flow, job, os.path.dirname(out))
    write(flow, out, text)
    return text


def run(flow: Flowstone, path: str = "plan.json", given: Given | None = None):
    return flow.drive(start_planned(flow, path, given or Given()).run_id, given)


def seal_of(flow: Flowstone, run_id: str):
    return json.loads(Path(flow.wiring.cwd, ".orun/wfruns", run_id, "seal.json").read_text())


def test_steps_run_one_after_the_other_and_hand_on_what_they_declare(flow):
    write(
        flow,
        "flows/greet.yaml",
        FLOW
        + (
            "inputs: { who: { type: string }, n: { type: integer } }\n"
            'outputs: { said: "steps.say.outputs.said" }\n'
            'steps: [{ name: say, run: [echo, "{{ inputs.who }} {{ inputs.n + 1 }}"], outputs: { said: "stdout.trim()" } }]\n'
        ),
    )
    plan(
        flow,
        """\
  - { name: count, run: "echo 41", outputs: { n: "int(stdout.trim())" } }
  - { name: greet, workflow: flows/greet.yaml, with: { who: you, n: "${{ steps.count.outputs.n }}" } }
  - name: last
    run: |
      echo "$SAID, ${{ steps.greet.outputs.said }}"
    env: { SAID: "said ${{ steps.greet.outputs.said }}" }
    outputs: { text: stdout }
""",
    )
    state = run(flow).state
    assert state.status == "succeeded"
    assert state.steps["last"].artifact == {"text": "said you 42, you 42\n"}


def test_the_same_files_give_the_same_bytes_from_any_folder(flow, tmp_path):
    write(flow, "ci/flows/a.yaml", FLOW + "steps: [{ name: s, run: [x] }]\n")
    text = plan(flow, "  - { name: a, workflow: flows/a.yaml }\n", "ci/job.yaml")
    with Flowstone(str(tmp_path / "ci"), dict(flow.wiring.env)) as other:
        assert plan_job(other, "job.yaml", "..") == text
        assert plan_job(other, str(tmp_path / "ci" / "job.yaml"), str(tmp_path)) == text
    assert json.loads(text)["job"]["path"] == "ci/job.yaml"
    assert str(tmp_path) not in text


def test_a_plan_file_runs_from_another_folder(flow):
    write(flow, "ci/flows/a.yaml", FLOW + "steps: [{ name: s, run: [echo, hi] }]\n")
    plan(flow, "  - { name: a, workflow: flows/a.yaml }\n", "ci/job.yaml", "build/plan.json")
    assert run(flow, "build/plan.json").state.status == "succeeded"


@pytest.mark.parametrize("name", ["job.yaml", "flows/a.yaml", "flows/leaf.yaml"])
@pytest.mark.parametrize("what", ["changed", "gone"])
def test_nothing_starts_when_a_pinned_file_is_another_one(flow, name, what):
    write(flow, "flows/leaf.yaml", FLOW + "steps: [{ name: s, run: [echo, hi] }]\n")
    write(flow, "flows/a.yaml", FLOW + "steps: [{ name: s, workflow: leaf.yaml }]\n")
    plan(flow, "  - { name: a, workflow: flows/a.yaml }\n")
    place = Path(flow.wiring.cwd, name)
    if what == "gone":
        place.unlink()
    else:
        place.write_text(place.read_text() + "# more\n")
    with pytest.raises(DigestMismatch) as refused:
        start_planned(flow, "plan.json", Given())
    assert f"plan.json: {name}: " in refused.value.message
    assert flow.list() == []


def test_all_changed_files_are_named_at_once(flow):
    for name in ("a", "b"):
        write(flow, f"{name}.yaml", FLOW + "steps: [{ name: s, run: [echo, hi] }]\n")
    plan(flow, "  - { name: a, workflow: a.yaml }\n  - { name: b, workflow: b.yaml }\n")
    for name in ("a", "b"):
        write(flow, f"{name}.yaml", "changed")
    with pytest.raises(DigestMismatch) as refused:
        start_planned(flow, "plan.json", Given())
    assert [line.split(":")[1] for line in refused.value.message.splitlines()[:-1]] == [" a.yaml", " b.yaml"]


def test_no_plan_file_and_an_altered_one(flow):
    with pytest.raises(SourceError):
        start_planned(flow, "plan.json", Given())
    text = plan(flow, "  - { name: a, run: echo hi }\n")
    write(flow, "plan.json", text.replace("echo hi", "echo ho"))
    with pytest.raises(PlanVersionError) as refused:
        start_planned(flow, "plan.json", Given())
    assert refused.value.message.startswith("plan.json: the plan file was altered")
    with pytest.raises(PlanVersionError, match=r"not a plan file: .*; make it with: orun plan"):
        start_planned(flow, "job.yaml", Given())


@pytest.mark.parametrize(("resume", "ran"), [("true", "first second second"), ("false", "first second first second")])
def test_resume_goes_on_where_the_workflow_failed(flow, resume, ran):
    write(flow, "flow.yaml", FLOW + COUNTING)
    plan(flow, f"  - {{ name: a, workflow: flow.yaml, with: {{ here: {flow.wiring.cwd} }}, resume: {resume} }}\n")
    report = run(flow)
    assert report.state.status == "failed"
    write(flow, "ok", "")
    assert flow.drive(report.state.run_id, reopen=True).state.status == "succeeded"
    assert Path(flow.wiring.cwd, "ran").read_text().split() == ran.split()


@pytest.mark.parametrize(("resume", "ran"), [("true", "first second second"), ("false", "first second first second")])
def test_so_does_a_retry(flow, resume, ran):
    write(flow, "flow.yaml", FLOW + COUNTING)
    more = f"resume: {resume}, retry: {{ maxRetries: 1, baseDelay: 1ms }}"
    plan(flow, f"  - {{ name: a, workflow: flow.yaml, with: {{ here: {flow.wiring.cwd} }}, {more} }}\n")
    run(flow)
    assert Path(flow.wiring.cwd, "ran").read_text().split() == ran.split()


def test_a_resume_verifies_the_pins_too(flow):
    write(flow, "flow.yaml", FLOW + COUNTING)
    plan(flow, f"  - {{ name: a, workflow: flow.yaml, with: {{ here: {flow.wiring.cwd} }} }}\n")
    run_id = run(flow).state.run_id
    write(flow, "flow.yaml", FLOW + COUNTING + "# more\n")
    with pytest.raises(DigestMismatch), Flowstone(flow.wiring.cwd, dict(flow.wiring.env)) as later:
        later.drive(run_id, reopen=True)


def test_on_failure(flow):
    plan(
        flow,
        """\
  - { name: a, run: exit 3, onFailure: continue }
  - { name: b, run: echo on }
  - { name: c, run: exit 4 }
  - { name: d, run: echo never }
""",
    )
    state = run(flow).state
    assert {s.id: s.status.value for s in state.order} == {
        "a": "failed",
        "b": "succeeded",
        "c": "failed",
        "d": "upstream_failed",
    }
    assert state.status == "failed"


def test_shell_text_ends_at_the_first_command_that_fails(flow):
    plan(flow, "  - name: a\n    run: |\n      false\n      touch went-on\n")
    assert run(flow).state.status == "failed"
    assert not Path(flow.wiring.cwd, "went-on").exists()


GRANTED = (
    FLOW
    + """\
connections: { gh: { type: http.bearer } }
steps: [{ name: s, run: [sh, -c, "echo {{ connections.gh.bearerToken }} | rev; echo {{ connections.gh.bearerToken }}"] }]
"""
)


def test_a_step_grants_a_secret_to_its_workflow_and_nobody_sees_it(flow):
    write(flow, "flow.yaml", GRANTED)
    text = plan(
        flow, "  - { name: a, workflow: flow.yaml, connections: { gh: { bearerToken: 'secret://env/TOKEN' } } }\n"
    )
    assert "secret://env/TOKEN" in text
    report = run(flow)
    assert report.state.status == "succeeded"
    files = [path for path in Path(flow.wiring.cwd, ".orun").rglob("*") if path.is_file()]
    assert any(b"eulavt3rc3s" in path.read_bytes() for path in files)
    assert not any(b"s3cr3tvalue" in path.read_bytes() for path in files)


def test_a_connection_that_no_step_grants_is_granted_at_the_start(flow):
    write(flow, "flow.yaml", GRANTED)
    plan(flow, "  - { name: a, workflow: flow.yaml }\n")
    with pytest.raises(InputError) as missing:
        start_planned(flow, "plan.json", Given())
    assert missing.value.message == 'step a: connection "gh" was not granted (--connection gh.bearerToken=...)'
    assert run(flow, given=Given(connections={"gh": {"bearerToken": "hush-hush"}})).state.status == "succeeded"


def test_a_missing_secret_is_told_before_anything_runs(flow):
    write(flow, "flow.yaml", GRANTED)
    plan(flow, "  - { name: a, workflow: flow.yaml, connections: { gh: { token: 'secret://env/NOPE' } } }\n")
    with pytest.raises(InputError, match="NOPE"):
        start_planned(flow, "plan.json", Given())
    assert flow.list() == []


def test_the_seal_says_what_ran(flow):
    from flowstone.values import canonical_json, sha256_hex

    write(flow, "flow.yaml", FLOW + "steps: [{ name: s, run: [echo, hi] }]\n")
    text = plan(flow, "  - { name: a, workflow: flow.yaml }\n  - { name: b, run: exit 1 }\n  - { name: c, run: x }\n")
    state = run(flow).state
    seal = seal_of(flow, state.run_id)
    assert (seal["status"], seal["planDigest"]) == ("failed", json.loads(text)["planDigest"])
    assert [(step["name"], step["status"]) for step in seal["steps"]] == [
        ("a", "succeeded"),
        ("b", "failed"),
        ("c", "blocked"),
    ]
    assert seal["steps"][0]["run"] == next(flow.wiring.store_for("orun").find(parent=state.run_id)).record.id
    digest = seal.pop("seal")
    assert digest == f"sha256:{sha256_hex(canonical_json(seal))}"


APPROVED = (
    "  - { name: a, run: echo went, approval: { prompt: Go on?, timeout: 20s } }\n  - { name: z, run: echo end }\n"
)


def deciding(
    flow: Flowstone, run_id: str, *, approved: bool, step: str = "a", note: str | None = None
) -> threading.Thread:
    """Somebody else who decides as soon as the run waits."""

    def decide() -> None:
        with Flowstone(flow.wiring.cwd, dict(flow.wiring.env)) as other:
            while True:
                try:
                    other.decide(run_id, step, approved=approved, by="ada", note=note)
                    return
                except IllegalTransition:
                    threading.Event().wait(0.02)

    thread = threading.Thread(target=decide)
    thread.start()
    return thread


@pytest.mark.parametrize("approved", [True, False])
def test_a_live_driver_notices_the_decision_of_another_process(flow, approved):
    plan(flow, APPROVED)
    run_id = start_planned(flow, "plan.json", Given()).run_id
    other = deciding(flow, run_id, approved=approved, note="because")
    state = flow.drive(run_id).state
    other.join()
    assert state.status == ("succeeded" if approved else "failed")
    decision = next(s["decision"] for s in seal_of(flow, run_id)["steps"] if s["name"] == "a_approval")
    assert {key: decision[key] for key in ("approved", "by", "note")} == {
        "approved": approved,
        "by": "ada",
        "note": "because",
    }
    assert state.steps["a_approval"].error == (None if approved else "rejected by ada: because")


def test_what_cannot_be_decided(flow):
    plan(flow, APPROVED)
    run_id = start_planned(flow, "plan.json", Given()).run_id
    with pytest.raises(IllegalTransition, match="has not been reached yet"):
        flow.decide(run_id, "a", approved=True, by="ada")
    with pytest.raises(IllegalTransition, match="waits for no decision"):
        flow.decide(run_id, "z", approved=True, by="ada")
    with pytest.raises(InputError, match='no step "nope"'):
        flow.decide(run_id, "nope", approved=True, by="ada")


def test_a_stopped_run_is_decided_and_then_resumed(flow):
    plan(flow, APPROVED)
    run_id = start_planned(flow, "plan.json", Given()).run_id
    stopped = flow.drive(run_id, options=flow.drive_options(timeout_ms=300))
    assert (stopped.end.halt, stopped.state.status) == ("interrupted", "active")
    view = flow.decide(run_id, "a", approved=True, by="ada")
    assert view.driver is None
    assert flow.drive(run_id).state.status == "succeeded"
    with pytest.raises(IllegalTransition, match="it was approved"):
        flow.decide(run_id, "a", approved=True, by="ada")


def test_an_answer_that_comes_too_late_is_refused(flow):
    plan(flow, APPROVED.replace("20s", "1500ms"))
    run_id = start_planned(flow, "plan.json", Given()).run_id
    flow.drive(run_id, options=flow.drive_options(timeout_ms=300))
    threading.Event().wait(1.5)
    with pytest.raises(IllegalTransition, match="its time is over"):
        flow.decide(run_id, "a", approved=True, by="ada")
    assert flow.drive(run_id).state.steps["a_approval"].error == "approval: nobody decided within 1.5s"


def test_a_new_run_that_takes_over_an_earlier_one_asks_anew(flow):
    write(flow, "job.yaml", JOB + "  - { name: first, run: echo one }\n" + APPROVED)
    earlier = flow.start("job.yaml").run_id
    other = deciding(flow, earlier, approved=True)
    assert flow.drive(earlier).state.status == "succeeded"
    other.join()
    fates = {seed.step: (seed.fate.value, seed.why) for seed in flow.reuse_list("job.yaml", earlier)}
    assert fates == {
        "first": ("reused", ""),
        "a_approval": ("run again", "a person decides for one run only"),
        "a": ("run again", "it follows a_approval"),
        "z": ("run again", "it follows a"),
    }


def test_an_interrupted_workflow_goes_on_where_it_stood(flow):
    steps = """\
inputs: { here: { type: string } }
steps:
  - { name: first, run: [sh, -c, "echo first >> {{ inputs.here }}/ran"] }
  - { name: second, needs: [first], run: [sh, -c, "test -e {{ inputs.here }}/ok || sleep 30"] }
"""
    write(flow, "flow.yaml", FLOW + steps)
    plan(flow, f"  - {{ name: a, workflow: flow.yaml, with: {{ here: {flow.wiring.cwd} }} }}\n")
    run_id = start_planned(flow, "plan.json", Given()).run_id
    assert flow.drive(run_id, options=flow.drive_options(timeout_ms=800)).end.halt == "interrupted"
    write(flow, "ok", "")
    assert flow.drive(run_id).state.status == "succeeded"
    assert Path(flow.wiring.cwd, "ran").read_text() == "first\n"


def test_hooks_are_pinned_verified_and_run(flow):
    write(flow, "flows/a.yaml", FLOW + "steps: [{ name: s, run: [echo, hi] }]\n")
    head = "apiVersion: orun.dev/v1\nkind: Blueprint\nmetadata: { name: service }\nhooks:\n"
    write(flow, "service.yaml", head + "  - { id: a, phase: postCreate, workflow: flows/a.yaml }\n")
    with pytest.raises(SourceError):
        start_hooks(flow, "service.yaml", "postCreate", Given())
    pins = pin_hooks(flow, "service.yaml")
    assert [(pin.id, pin.phase, pin.workflow) for pin in pins] == [("a", "postCreate", "flows/a.yaml")]
    lock = Path(flow.wiring.cwd, ".orun/provenance.lock")
    assert json.loads(lock.read_text())["hooks"][0]["digest"] == flow.compile("flows/a.yaml").compiled.digest
    assert verify_hooks(flow) == pins
    started = start_hooks(flow, "service.yaml", "postCreate", Given())
    assert flow.drive(started.run_id).state.status == "succeeded"
    write(flow, "flows/a.yaml", FLOW + "steps: [{ name: s, run: [echo, ho] }]\n")
    for call in (verify_hooks, lambda flow: start_hooks(flow, "service.yaml", "postCreate", Given())):
        with pytest.raises(DigestMismatch, match="hook a: digest changed"):
            call(flow)
    pin_hooks(flow, "service.yaml")
    with pytest.raises(InputError, match="no hooks of the phase"):
        start_hooks(flow, "service.yaml", "preCreate", Given())


FAR = FLOW + 'outputs: { from: "steps.s.stdout.trim()" }\nsteps: [{ name: s, run: [printenv, ORUN_FLOW_SOURCE_URL] }]\n'


def test_a_remote_workflow_is_pinned_and_told_where_it_came_from(tmp_path):
    env = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "XDG_DATA_HOME": str(tmp_path / "data")}
    with WireServer({"/far.yaml": page(FAR.encode())}) as server:
        steps = (
            f"  - {{ name: a, workflow: {server.url}/far.yaml }}\n"
            '  - { name: b, run: "echo ${{ steps.a.outputs.from }}", outputs: { url: "stdout.trim()" } }\n'
        )
        with Flowstone(str(tmp_path), env) as flow:
            text = plan(flow, steps)
            assert json.loads(text)["workflows"][0]["path"] == f"{server.url}/far.yaml"
            assert run(flow).state.steps["b"].artifact == {"url": f"{server.url}/far.yaml"}
        with Flowstone(str(tmp_path), env) as flow:
            flow.wiring.frozen = True
            with pytest.raises(UsageError, match="--frozen"):
                plan_job(flow, "job.yaml", "")
        server.replies["/far.yaml"] = page(FAR.encode() + b"# moved\n")
        with Flowstone(str(tmp_path), env) as flow, pytest.raises(DigestMismatch, match="digest changed"):
            start_planned(flow, "plan.json", Given())
