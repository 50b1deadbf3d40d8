"""What a job may not say: all of it at once, each with its place and a stable code."""

from __future__ import annotations

import pytest

from tests.unit.formats.orun_job.jobs import HEAD, compiled, said

WRONG = {
    "- { name: A, run: x }": '5:13 invalid-name steps[0]: name "A" must match ^[a-z][a-z0-9-]*$',
    "- { name: a }": "5:13 one-verb step a: exactly one of run/workflow is required, or an approval (got 0)",
    "- { name: a, run: x, workflow: release.yaml, with: { image: i } }": (
        "5:34 one-verb step a: exactly one of run/workflow is required, or an approval (got 2)"
    ),
    '- { name: a, run: " " }': "5:21 empty-command step a: run must hold a command",
    "- { name: a, run: x, resume: true }": "5:32 key-of-other-verb step a: resume applies only to workflow: steps",
    "- { name: a, run: x, timeout: soon }": None,
    "- { name: a, run: x, timeout: -1s }": '5:33 invalid-duration step a: timeout must be a positive duration, got "-1s"',
    "- { name: a, run: x, retry: { maxRetries: 0 } }": "5:24 out-of-range step a: retry.maxRetries must be >= 1",
    "- { name: a, run: x, retry: { maxRetries: 1, kind: no } }": (
        '5:54 invalid-value step a: retry.kind must be fixed|exponential, got "no"'
    ),
    "- { name: a, run: x, onFailure: explode }": (
        '5:35 invalid-value step a: onFailure must be stop|continue, got "explode"'
    ),
    "- { name: a, run: x, poll: {} }": None,
    "- { name: a, run: x, env: { A=B: c } }": '5:31 invalid-name step a: env: "A=B" is no name of a variable',
    '- { name: a, run: x, outputs: { x: "stdout +" } }': None,
    '- { name: a, run: x, outputs: { x: "steps.b.outputs.x" } }': (
        "5:39 invisible-reference step a: outputs.x: references steps.b, which is no earlier step"
    ),
    '- { name: a, run: x, outputs: { x: "inputs.x" } }': (
        "5:39 invisible-reference step a: outputs.x: references inputs, which a job does not have"
    ),
    '- { name: a, run: "${{ steps.a.outputs.x }}" }': (
        "5:22 invisible-reference step a: run: references steps.a, which is no earlier step"
    ),
    '- { name: a, run: "x ${{ 1 + 1 }}" }': (
        "5:24 invalid-expression step a: run: ${{ 1 + 1 }} is no reference to an output of an earlier step"
    ),
    '- { name: a, run: "x ${{ steps" }': (
        "5:24 invalid-expression step a: run: ${{ without }}: the reference has no end"
    ),
    "- { name: a, approval: {} }": "5:16 missing-prompt step a: approval.prompt is required: what is to be decided",
    "- { name: a, approval: { prompt: p, timeout: 1m, onTimeout: maybe } }": (
        '5:63 invalid-value step a: approval.onTimeout must be reject|approve, got "maybe"'
    ),
    "- { name: a, approval: { prompt: p, onTimeout: approve } }": (
        "5:50 missing-timeout step a: approval.onTimeout needs a timeout beside it"
    ),
    "- { name: a, approval: { prompt: p }, retry: { maxRetries: 1 } }": (
        "5:48 key-of-other-verb step a: retry applies only to run: and workflow: steps"
    ),
    "- { name: a, workflow: nope.yaml }": "5:26 child-missing step a: workflow nope.yaml: nope.yaml: no such file",
    "- { name: a, workflow: /etc/passwd }": None,
    "- { name: a, workflow: 'https://me:pw@example.org/x.yaml' }": (
        "5:26 child-missing step a: workflow https://me:pw@example.org/x.yaml: "
        "a job holds no user and password; take them out of the address"
    ),
    "- { name: a, workflow: release.yaml }": (
        "5:13 missing-input step a: workflow release: inputs.image is required (with: { image: ... })"
    ),
    "- { name: a, workflow: release.yaml, with: { image: i, nope: 1 } }": (
        '5:58 unknown-input step a: workflow release: unknown input "nope" (declared: count, image)'
    ),
    "- { name: a, workflow: release.yaml, with: { image: i, count: many } }": (
        "5:65 invalid-value step a: workflow release: inputs.count: must be an integer"
    ),
    "- { name: a, workflow: release.yaml, with: { image: i }, connections: { gh: { bearerToken: abc } } }": (
        "5:94 secret-in-file step a: connections.gh.bearerToken must name a secret: a value never stands in a file"
    ),
    "- { name: a, workflow: release.yaml, with: { image: i }, connections: { gh: {} } }": (
        "5:75 missing-grant step a: connections.gh: http.bearer needs bearerToken or token"
    ),
    "- { name: a, workflow: release.yaml, with: { image: i }, connections: { gl: { token: 'secret://env/A' } } }": (
        '5:75 undeclared-connection step a: workflow release declares no connection "gl" (declared: gh)'
    ),
}
"""A step and all that is said of it; None where only that something is said matters."""


@pytest.mark.parametrize("step", WRONG)
def test_each_mistake_by_itself(tmp_path, step):
    found = said(tmp_path, f"  {step}\n")
    assert len(found) == 1
    if WRONG[step] is not None:
        assert found == [WRONG[step]]


def test_names_of_outputs_are_checked_where_they_are_read(tmp_path):
    steps = """\
  - { name: a, run: x, outputs: { one: "1" } }
  - { name: b, workflow: release.yaml, with: { image: "${{ steps.a.outputs.two }}" } }
  - { name: c, approval: { prompt: "${{ steps.b.outputs.tag }}, ${{ steps.b.outputs.tags }}?" } }
  - { name: d, run: x, env: { WHO: "${{ steps.c.outputs.by }}", OH: "${{ steps.c.outputs.who }}" } }
"""
    assert said(tmp_path, steps) == [
        '6:56 unknown-output step b: with.image: step a has no output "two" (declared: one)',
        '7:65 unknown-output step c: approval.prompt: step b has no output "tags" (declared: tag)',
        '8:70 unknown-output step d: env.OH: step c has no output "who" (declared: approved, at, by, note)',
    ]


def test_mistakes_of_a_workflow_are_told_at_the_step_with_their_place(tmp_path):
    broken = HEAD.replace("Job", "Workflow") + "  - { name: s, run: [x], if: 'nope' }\n"
    found = said(tmp_path, "  - { name: a, workflow: ./release.yaml }\n", workflow=broken)
    assert found == [
        "5:26 invalid-child step a: workflow ./release.yaml: release.yaml:5:31: "
        "step s: if: undeclared reference to 'nope'"
    ]


def test_all_mistakes_at_once_in_the_order_of_the_file(tmp_path):
    steps = "  - { name: a, run: '', resume: true }\n  - { name: a, workflow: no.yaml, cwd: x }\n"
    found = said(tmp_path, steps, head=HEAD.replace("deploy", "De"))
    assert [line.split()[1] for line in found] == [
        "invalid-name",
        "empty-command",
        "key-of-other-verb",
        "duplicate-step",
        "child-missing",
        "key-of-other-verb",
    ]


def test_a_workflow_is_no_job(tmp_path):
    text = "apiVersion: orun.dev/v1\nkind: Workflow\nsteps: []\n"
    from flowstone.formats.orun_job.compile import compile_job
    from flowstone.source.file import text_of

    found = compile_job("job.yaml", text_of(text.encode(), "job.yaml"), None).diagnostics
    assert [d.message for d in found] == [
        'not a job: want apiVersion orun.dev/v1 kind Job, got "orun.dev/v1" "Workflow"'
    ]


def test_a_job_without_steps(tmp_path):
    assert [d.code for d in compiled(tmp_path, "  []\n").diagnostics] == ["no-steps"]
