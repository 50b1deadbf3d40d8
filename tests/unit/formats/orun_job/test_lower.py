"""A job in the one plan model: a chain of steps, an approval as a unit, grants that only their step can use."""

from __future__ import annotations

import msgspec

from flowstone.expr.model import Cel, Literal, Template
from flowstone.plan.checks.structure import problems_of
from flowstone.plan.model import Join, ResumeRule, Retry
from flowstone.plan.units import ApprovalSpec, ChildSpec, ExecSpec, TakeUp
from tests.unit.formats.orun_job.jobs import planned

JOB = """\
  - name: build
    run: make ${TARGET}
    env: { TARGET: all }
    timeout: 30s
    retry: { maxRetries: 2, baseDelay: 1s, kind: fixed }
    outputs: { image: "stdout.trim()" }
  - name: release
    workflow: ./release.yaml
    with: { image: "${{ steps.build.outputs.image }}", count: 3 }
    connections: { gh: { bearerToken: secret://env/GH_TOKEN } }
    resume: true
    approval: { prompt: "Release ${{ steps.build.outputs.image }}?", timeout: 1h, onTimeout: approve }
  - name: again
    workflow: release.yaml
    with: { image: x }
    onFailure: continue
  - name: tell
    run: echo done
"""


def test_the_chain(tmp_path):
    plan = planned(tmp_path, JOB)
    assert [(step.id, step.needs) for step in plan.steps] == [
        ("build", ()),
        ("release_approval", ("build",)),
        ("release", ("release_approval",)),
        ("again", ("release",)),
        ("tell", ("again",)),
    ]
    assert [step.join for step in plan.steps][-1] is Join.ALL_ENDED
    assert {step.join for step in plan.steps[:-1]} == {Join.ALL_SATISFIED}
    assert [step.id for step in plan.steps if step.tolerated] == ["again"]
    assert problems_of(plan) == []


def test_a_command(tmp_path):
    build = planned(tmp_path, JOB).step("build")
    assert isinstance(build.unit.spec, ExecSpec)
    assert build.unit.spec.argv == ("sh", "-ec", "make ${TARGET}")
    assert build.unit.timeout_ms == 30_000
    assert build.repeat == Retry(2, base_ms=1000)


def test_references_keep_the_type_of_a_value_that_they_are_alone(tmp_path):
    spec = planned(tmp_path, JOB).step("release").unit.spec
    assert isinstance(spec, ChildSpec)
    fields = dict(spec.arguments.fields)
    assert isinstance(fields["image"], Template)
    assert fields["image"].native
    assert fields["image"].reads == ("build",)
    assert fields["count"] == Literal(3)


def test_an_approval_waits_in_front_of_its_step(tmp_path):
    spec = planned(tmp_path, JOB).step("release_approval").unit.spec
    assert isinstance(spec, ApprovalSpec)
    assert (spec.timeout_ms, spec.approve_on_timeout, spec.guards) == (3_600_000, True, "release")
    assert [type(part) for part in spec.prompt.parts] == [str, Cel, str]


def test_an_approval_alone_is_the_step(tmp_path):
    plan = planned(tmp_path, "  - { name: go, approval: { prompt: Go? } }\n")
    assert [(step.id, step.unit.spec) for step in plan.steps] == [("go", ApprovalSpec(Literal("Go?")))]


def test_a_grant_is_for_its_step_alone(tmp_path):
    plan = planned(tmp_path, JOB)
    assert {c.name: c.fields for c in plan.connections} == {
        "release.gh": (("bearerToken", "secret://env/GH_TOKEN"),),
        "gh": (),
    }
    assert plan.step("release").unit.spec.grants == (("gh", "release.gh"),)
    assert plan.step("release").connections == ("release.gh",)
    assert (plan.step("again").unit.spec.grants, plan.step("again").connections) == ((), ("gh",))


def test_resume_goes_on_with_a_failed_workflow(tmp_path):
    plan = planned(tmp_path, JOB)
    assert plan.step("release").unit.spec.take_up is TakeUp.ALWAYS
    assert plan.step("again").unit.spec.take_up is TakeUp.UNFINISHED


def test_all_files_are_pinned_from_the_folder_of_the_job(tmp_path):
    plan = planned(tmp_path, JOB)
    assert [file.path for file in plan.read_set] == ["job.yaml", "release.yaml"]
    assert plan.policies.resume is ResumeRule.PINNED


def test_a_refused_approval_of_a_step_that_may_fail_skips_it(tmp_path):
    plan = planned(tmp_path, "  - { name: a, run: x, approval: { prompt: p }, onFailure: continue }\n")
    guard, step = plan.steps
    assert guard.tolerated
    assert step.when.source == '!steps["a_approval"].failed'
    assert step.join is Join.ALL_ENDED


def test_a_job_in_another_folder_has_the_same_plan(tmp_path):
    one, other = tmp_path / "one", tmp_path / "other"
    one.mkdir()
    other.mkdir()
    assert msgspec.json.encode(planned(one, JOB)) == msgspec.json.encode(planned(other, JOB))
