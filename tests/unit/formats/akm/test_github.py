"""The GitHub-shaped subset: what it accepts, and every code with which it refuses."""

from __future__ import annotations

import pytest

from flowstone.formats.akm_common.compile import usage_code
from flowstone.formats.akm_github.parse import owns
from flowstone.plan.model import Trigger
from flowstone.plan.units import AssetTarget, ExecSpec, LiteralEnv, PromptTarget
from tests.unit.formats.akm.compiling import codes, errors, github, job, plan_of

RUN = "- { id: a, run: echo x }"


def test_a_whole_workflow() -> None:
    plan = plan_of(
        github(
            """name: Local checks
on:
  schedule:
    - cron: "0  6 * * *"
  workflow_dispatch:
jobs:
  checks:
    name: Checks
    needs: []
    runs-on: [self-hosted]
    steps:
      - id: lint
        name: Lint
        run: "  bun   run \\t lint "
        shell: bash
        working-directory: ./packages/core
        env: { A: 1.10, B: true, C: x }
      - id: review
        uses: akm/command
        with:
          ref: commands/review
"""
        )
    )
    lint, review = plan.steps
    assert plan.title == "Local checks"
    assert plan.triggers == (Trigger("0 6 * * *"), Trigger(None))
    assert isinstance(lint.unit.spec, ExecSpec)
    assert lint.unit.spec.argv == ("bash", "-c", "bun run lint")
    assert lint.unit.spec.cwd == "packages/core"
    assert lint.unit.spec.env == (LiteralEnv("A", "1.10"), LiteralEnv("B", "true"), LiteralEnv("C", "x"))
    assert lint.instructions == "Run bun run lint."
    assert lint.name == "Lint"
    assert review.needs == ("lint",)
    assert isinstance(review.unit.spec, AssetTarget)
    assert review.unit.spec.ref == "commands/review"
    assert review.unit.spec.arguments == {"ref": "commands/review"}
    assert review.unit.spec.mode == "stored-ref"


@pytest.mark.parametrize(
    ("shell", "argv"),
    [
        ("", ("sh", "-c", "echo x")),
        (", shell: zsh", ("zsh", "-c", "echo x")),
        (", shell: cmd", ("cmd", "/d", "/s", "/c", "echo x")),
        (", shell: pwsh", ("pwsh", "-Command", "echo x")),
        (", shell: powershell", ("powershell", "-Command", "echo x")),
    ],
)
def test_shells(shell: str, argv: tuple[str, ...]) -> None:
    plan = plan_of(job(f"- {{ id: a, run: echo x{shell} }}"))
    assert plan.steps[0].unit.spec.argv == argv


@pytest.mark.parametrize(
    ("step", "code"),
    [
        ("- { run: echo x }", "missing-key"),
        ("- { id: a.b, run: echo x }", "invalid-step-id"),
        ("- { id: a }", "step-target-xor"),
        ("- { id: a, run: x, uses: commands/x }", "step-target-xor"),
        ("- { id: a, run: echo x, if: always() }", "unknown-key"),
        ("- { id: a, run: echo x, with: { a: 1 } }", "run-field-conflict"),
        ("- { id: a, uses: commands/x, shell: sh }", "uses-field-conflict"),
        ("- { id: a, uses: commands/x, working-directory: b }", "uses-field-conflict"),
        ("- { id: a, run: echo x, shell: fish }", "unsupported-shell"),
        ("- { id: a, run: 'a && b' }", "unsafe-run-syntax"),
        ('- { id: a, run: "one\\ntwo" }', "unsafe-run-syntax"),
        ('- { id: a, run: "a\\0b" }', "invalid-exec-argv"),
        ("- { id: a, run: '' }", "string-required"),
        ("- { id: a, run: [x] }", "string-required"),
        ("- { id: a, run: x, working-directory: ../x }", "working-directory-escape"),
        ("- { id: a, run: x, working-directory: /x }", "working-directory-escape"),
        ('- { id: a, run: x, working-directory: "a\\tb" }', "working-directory-control-character"),
        ("- { id: a, run: x, env: { A-B: 1 } }", "invalid-mapping-key"),
        ("- { id: a, run: x, env: { A: } }", "scalar-required"),
        ("- { id: a, run: x, env: { __proto__: 1 } }", "unsafe-key"),
        ("- { id: a, run: 'echo ${{ x }}' }", "unsupported-github-expression"),
        ("- { id: a, run: x, '${{ k }}': 1 }", "unsupported-github-expression"),
        ("- { id: a, run: !t x }", "yaml-custom-tag"),
        ("- { id: a, run: x, env: &e { A: 1 } }", "yaml-anchor"),
        ("- { id: a, id: b, run: x }", "duplicate-key"),
        ("- { id: a, uses: akm/command }", "builtin-command-inputs"),
        ("- { id: a, uses: akm/command, with: { ref: commands/x, content: y } }", "builtin-command-inputs"),
        ("- { id: a, uses: akm/command, with: { content: 1 } }", "builtin-command-inputs"),
        ("- { id: a, uses: akm/command, with: { ref: tasks/x } }", "builtin-command-inputs"),
        ("- { id: a, uses: 'docker://x' }", "docker-action-unsupported"),
        ("- { id: a, uses: ./x }", "local-action-path-unsupported"),
        ("- { id: a, uses: agents/x }", "non-executable-asset-ref"),
        ("- { id: a, uses: b//agents/x }", "non-executable-asset-ref"),
        ("- { id: a, uses: actions/checkout@v4 }", "unsupported-uses-target"),
        ("- { id: a, uses: word }", "unsupported-uses-target"),
        ("- { id: a, uses: 'commands/a b' }", "unsupported-uses-target"),
        ("- { id: a, uses: 'commands/../x' }", "unsupported-uses-target"),
        ("- { id: a, uses: commands/x, with: {} }", "with-unsupported"),
        ("- { id: a, uses: tasks/x, with: { 1a: x } }", "invalid-mapping-key"),
        ("- { id: a, uses: tasks/x, with: { n: { from: steps.z.output, x: 1 } } }", "input-binding-invalid"),
        ("- { id: a, uses: tasks/x, with: { n: { from: 1 } } }", "input-binding-invalid"),
        ("- { id: a, uses: tasks/x, with: { n: { from: params.x } } }", "input-binding-invalid"),
        ("- { id: a, uses: tasks/x, with: { n: { from: steps.a.output } } }", "input-binding-later-step"),
    ],
)
def test_a_step_is_refused(step: str, code: str) -> None:
    found = job(step)
    assert errors(found) == [(code, 7)]
    assert found.diagnostics[0].message.startswith(f"{code}: ")


@pytest.mark.parametrize(
    ("head", "code"),
    [
        ("on: { workflow_dispatch: }", "missing-key"),
        ("name: ' '\non: { workflow_dispatch: }", "string-required"),
        ("name: W", "missing-key"),
        ("name: W\non: {}", "trigger-required"),
        ("name: W\non: { push: }", "unsupported-service-event"),
        ("name: W\non: { workflow_dispatch: { inputs: {} } }", "workflow-dispatch-inputs-unsupported"),
        ("name: W\non: { schedule: [{ cron: '@daily' }] }", "invalid-cron"),
        ("name: W\non: { schedule: [{ cron: '0 6 * *' }] }", "invalid-cron"),
        ("name: W\non: { schedule: [{}] }", "missing-key"),
        ("name: W\non: { workflow_dispatch: }\npermissions: {}", "unknown-key"),
    ],
)
def test_the_head_is_refused(head: str, code: str) -> None:
    assert codes(job(RUN, head)) == [code]


@pytest.mark.parametrize(
    ("jobs", "code", "usage"),
    [
        ("{}", "multi-job-unsupported", "COMPOSITION_INVALID"),
        (
            "{ a: { runs-on: [self-hosted], steps: [{ id: a, run: x }] }, b: {} }",
            "multi-job-unsupported",
            "COMPOSITION_INVALID",
        ),
        (
            "{ a: { needs: [b], runs-on: [self-hosted], steps: [{ id: a, run: x }] } }",
            "multi-job-unsupported",
            "COMPOSITION_INVALID",
        ),
        (
            "{ a: { runs-on: self-hosted, steps: [{ id: a, run: x }] } }",
            "unsupported-runner",
            "WORKFLOW_SOURCE_INVALID",
        ),
        ("{ a: { runs-on: [self-hosted], steps: [] } }", "sequence-required", "WORKFLOW_SOURCE_INVALID"),
        ("{ a: { runs-on: [self-hosted] } }", "missing-key", "WORKFLOW_SOURCE_INVALID"),
        ("{ 1a: { runs-on: [self-hosted], steps: [{ id: a, run: x }] } }", "invalid-job-id", "WORKFLOW_SOURCE_INVALID"),
        (
            "{ a: { strategy: {}, runs-on: [self-hosted], steps: [{ id: a, run: x }] } }",
            "unknown-key",
            "WORKFLOW_SOURCE_INVALID",
        ),
    ],
)
def test_jobs_are_refused(jobs: str, code: str, usage: str) -> None:
    found = github(f"name: W\non: {{ workflow_dispatch: }}\njobs: {jobs}\n")
    assert codes(found) == [code]
    assert usage_code(found.diagnostics) == usage


def test_all_mistakes_are_told_at_once() -> None:
    found = job("- { id: a, run: 'a;b', shell: fish }\n- { id: a, uses: word }\n- { run: x }")
    assert errors(found) == [
        ("unsafe-run-syntax", 7),
        ("unsupported-shell", 7),
        ("duplicate-step-id", 8),
        ("unsupported-uses-target", 8),
        ("missing-key", 9),
    ]


def test_the_path_of_a_value_is_told() -> None:
    assert '"jobs.j.steps[0].run"' in job("- { id: a, run: 'a;b' }").diagnostics[0].message


def test_bombs_are_refused() -> None:
    assert codes(job("- { id: a, uses: tasks/x, with: { a: " + "[" * 40 + "]" * 40 + " } }")) == ["yaml-depth-limit"]
    many = ", ".join("1" for _ in range(20_001))
    assert codes(job(f"- {{ id: a, uses: tasks/x, with: {{ a: [{many}] }} }}")) == ["yaml-node-limit"]
    assert codes(github("# " + "x" * 1024 * 1024 + "\nname: W")) == ["source-size-limit"]
    assert codes(github("- a")) == ["mapping-required"]


def test_a_binding_may_be_any_json() -> None:
    step = "- { id: a, uses: tasks/x, with: { n: 1.0, o: { deep: [1, null] }, r: { from: steps.z.output.k } } }"
    plan = plan_of(job(f"- {{ id: z, run: echo 1 }}\n{step}"))
    assert plan.steps[1].unit.spec.arguments == {
        "n": 1,
        "o": {"deep": [1, None]},
        "r": {"from": "steps.z.output.k"},
    }


def test_modes_of_the_builtin_command() -> None:
    literal, template, arguments, filled, untouched = plan_of(
        job(
            "- { id: a, uses: akm/command, with: { content: Do. } }\n"
            "- { id: b, uses: akm/command, with: { content: Do $ARGUMENTS. } }\n"
            "- { id: c, uses: akm/command, with: { content: '', arguments: '' } }\n"
            "- { id: d, uses: akm/command, with: { content: 'Do $ARGUMENTS twice: $ARGUMENTS.',"
            " arguments: '$& and $ARGUMENTS' } }\n"
            "- { id: e, uses: akm/command, env: { A: 1 }, with: { content: 'Say $HOME and {{ x }}.' } }"
        )
    ).steps
    assert literal.unit.spec == PromptTarget("Do.")
    assert template.unit.spec == PromptTarget("Do .")
    assert arguments.unit.spec == PromptTarget("")
    assert filled.unit.spec == PromptTarget("Do $& and $ARGUMENTS twice: $& and $ARGUMENTS.")
    assert filled.instructions == filled.unit.spec.content
    assert untouched.unit.spec == PromptTarget("Say $HOME and {{ x }}.", values=(LiteralEnv("A", "1"),))


@pytest.mark.parametrize(
    ("content", "construct"),
    [
        ("$ARGUMENTS and ${HOME}", "${HOME}"),
        ("$ARGUMENTS and $(date)", "$(date)"),
        ("$ARGUMENTS and $1", "$1"),
        ("$ARGUMENTS and $HOME", "$HOME"),
        ("$ARGUMENTS_ALL of $ARGUMENTS", "$ARGUMENTS_ALL"),
        ("$ARGUMENTS and {{ x }}", "{{"),
    ],
)
def test_a_template_holds_no_other_substitution(content: str, construct: str) -> None:
    found = job(f"- {{ id: a, uses: akm/command, with: {{ content: '{content}' }} }}")
    (problem,) = found.diagnostics
    assert problem.code == "builtin-command-inputs"
    assert construct in problem.message


def test_a_secret_in_a_literal_env_is_warned_about() -> None:
    found = job("- { id: a, run: x, env: { API_TOKEN: abc } }")
    assert [d.code for d in found.diagnostics] == ["secret-in-env"]
    assert found.plan is not None


def test_ownership() -> None:
    assert owns("name: W\non: {push: }\njobs: {a: }\n")
    assert not owns("version: 4\nrun: x\n")
    assert not owns("[")
