"""What `orun workflow validate` refuses, beyond the conformance cases; each with its place."""

from __future__ import annotations

import pytest

from flowstone.formats.orun.compile import compile_orun
from flowstone.source.file import SourceText, text_of

HEAD = "apiVersion: orun.dev/v1\nkind: Workflow\nmetadata: { name: x }\n"


def said(body: str, head: str = HEAD) -> list[str]:
    def load(path: str) -> SourceText:
        raise AssertionError(path)

    found = compile_orun("w.yaml", text_of((head + body).encode(), "w.yaml"), load)
    assert (found.plan is None) == bool(found.diagnostics)
    return [f"{d.place.line}:{d.place.column}: {d.message}" for d in found.diagnostics]


def step(text: str) -> str:
    return f'steps:\n  - name: a\n    run: ["true"]\n    {text}\n'


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (step("timeout: 0s"), '7:14: step a: timeout must be a positive duration, got "0s"'),
        (step("timeout: 10"), "7:14: step a: timeout: invalid duration"),
        (step("timeout: 99999999h"), "7:14: step a: timeout: invalid duration"),
        (step("retry: {}"), "7:5: step a: retry.maxRetries must be >= 1"),
        (step("poll: {}"), "7:5: step a: poll.interval must be a positive duration"),
        (step("poll: { interval: -1s, timeout: 1s, until: 'true' }"), "7:23: step a: poll.interval must be a positive"),
        (step("poll: { interval: 1s, timeout: 1s }"), "7:5: step a: poll.until is required"),
        (step("needs: [a]"), "7:13: step a: needs itself"),
        (step("connection: gh"), "7:17: step a: connection applies only to action: steps"),
        (step("outputs: { 'a b': '1' }"), "7:16: step a: outputs: name"),
        (step("outputs: { a: }"), "step a: outputs.a: empty expression"),
        (step("env: { A: ~ }"), "parse workflow:"),
        (step("continueOnError: maybe"), "7:22: parse workflow:"),
        (step("action: sleep"), "exactly one of run/action/workflow is required (got 2)"),
        ("connections: { gh: {} }\n" + step("cwd: ."), "4:16: connections.gh: type is required"),
        (
            "inputs: { v: { type: integer, default: 1.5 } }\n" + step("cwd: ."),
            "inputs.v: the default must be an integer",
        ),
        ("inputs: { v: { type: boolean, default: 'true' } }\n" + step("cwd: ."), "the default must be a boolean"),
        ("inputs: { v: { pattern: '^a', default: b } }\n" + step("cwd: ."), 'the default "b" does not match ^a'),
        ("inputs: { v: { type: number, values: [1, x] } }\n" + step("cwd: ."), "values[1] must be a number"),
        ("inputs: { v: { values: [] } }\n" + step("cwd: ."), "values must list at least one value"),
        ("maxParallel: 0\n" + step("cwd: ."), "4:14: maxParallel must be >= 1"),
        (step("if: '{{ true }}'"), "step a: if:"),
        (step("if: 'steps[inputs.x].status == 1'"), "cannot be checked"),
        (
            step("cwd: '{{ steps.b.stdout }}'"),
            "7:14: step a: cwd: references steps.b, which is not a declared upstream",
        ),
    ],
)
def test_refusals(body, expected):
    assert any(expected in line for line in said(body)), said(body)


def test_a_name_is_asked_for():
    assert said(step("cwd: ."), HEAD.replace("{ name: x }", "{}"))[0].endswith(
        'metadata.name "" must match ^[a-z][a-z0-9-]*$'
    )
    assert said('steps:\n  - run: ["true"]\n') == ['5:5: steps[0]: name "" must match ^[a-z][a-z0-9-]*$']


def test_duplicate_needs_and_a_typo_in_needs():
    body = "steps:\n  - { name: build, run: [a] }\n  - { name: b, needs: [build, build, biuld], run: [a] }\n"
    assert said(body) == ['6:31: step b: duplicate needs "build"', '6:38: step b: needs unknown step "biuld"']


def test_a_cycle_adds_no_errors_of_visibility():
    body = "steps:\n  - { name: a, needs: [b], run: ['{{ steps.b.stdout }}'] }\n  - { name: b, needs: [a], run: [x] }\n"
    assert said(body) == ["5:23: workflow x: needs edges form a cycle: a → b → a"]


def test_ancestors_are_visible_through_others():
    body = (
        "steps:\n  - { name: a, run: [x] }\n  - { name: b, needs: [a], run: [x] }\n"
        "  - { name: c, needs: [b], run: ['{{ steps.a.stdout }}'], if: \"steps['a'].failed\" }\n"
    )
    assert said(body) == []


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ("action: http.request\n    with: { url: '' }", "http.request: with.url is required"),
        ("action: http.request\n    with: { url: x, heads: {} }", "unknown with.heads"),
        ("action: http.request\n    with: { url: [x] }", "with.url must be a text, got a list"),
        ("action: http.request\n    with: { url: x, headers: { a: [] } }", "but a is a list"),
        ("action: script\n    with: { source: '1', inputs: 2 }", "unknown with.inputs"),
        ("action: script", "script: with.source is required"),
        ("action: sleep\n    with: { duration: 5 }", "with.duration is no duration"),
        ("action: sleep\n    with: [1]", "must be a mapping"),
    ],
)
def test_arguments_of_actions(arguments, expected):
    lines = said(f"steps:\n  - name: a\n    {arguments}\n")
    assert any(expected in line for line in lines), lines


def test_templates_in_arguments_are_judged_when_filled_in():
    body = "inputs: { d: {} }\nsteps:\n  - name: a\n    action: sleep\n    with: { duration: '{{ inputs.d }}' }\n"
    assert said(body) == []


def test_places_inside_block_and_quoted_texts():
    body = 'steps:\n  - name: a\n    run:\n      - |\n        first\n        {{ nope }}\n      - "x {{ nope }}"\n'
    assert [line.split(": ")[0] for line in said(body)] == ["9:12", "10:15"]


def test_aliases_and_merge_keys_are_fine():
    body = "steps:\n  - &base { name: a, run: [x], timeout: 5s }\n  - { <<: *base, name: b }\n"
    assert said(body) == []


def test_old_and_other_languages():
    assert "not supported" in said("", "apiVersion: torkflow/v1\n")[0]
    assert said("", "a: 1\n")[0].endswith('not a workflow: want apiVersion orun.dev/v1 kind Workflow, got "" ""')
    assert said("", "- 1\n")[0].startswith("1:1: not a workflow")
