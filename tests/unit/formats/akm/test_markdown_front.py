"""The front matter of a Markdown workflow: envelope, settings, and what a step may hold."""

from __future__ import annotations

import pytest

from tests.unit.formats.akm.compiling import codes, errors, markdown, plan_of

STEP = "steps:\n  - id: a"


def test_the_minimal_workflow_compiles() -> None:
    plan = plan_of(markdown(STEP))
    assert [step.id for step in plan.steps] == ["a"]
    assert plan.name == "w"
    assert plan.dialect == "akm"


def test_a_file_without_front_matter_is_one_error_on_line_1() -> None:
    from flowstone.formats.akm_common.compile import compile_markdown
    from flowstone.source.file import text_of

    compiled = compile_markdown("w.md", text_of(b"# T\n\n## a\n", "w.md"), None)
    assert errors(compiled) == [("frontmatter-missing", 1)]
    assert compiled.plan is None


def test_empty_front_matter_lacks_steps() -> None:
    assert codes(markdown("")) == ["steps-missing"]


def test_a_yaml_error_stops_everything_else() -> None:
    assert codes(markdown("steps: [\nfoo: 1")) == ["invalid-yaml"]


def test_bom_and_crlf_change_nothing() -> None:
    from flowstone.formats.akm_common.compile import compile_markdown
    from flowstone.source.file import text_of

    text = "---\nsteps:\n  - id: a\n---\n\n## a\n\nOne.\nTwo.\n"
    plain = compile_markdown("w.md", text_of(text.encode(), "w.md"), None)
    odd = compile_markdown("w.md", text_of(b"\xef\xbb\xbf" + text.replace("\n", "\r\n").encode(), "w.md"), None)
    assert plan_of(odd).steps == plan_of(plain).steps


@pytest.mark.parametrize(
    ("line", "code"),
    [
        ("type: task", "invalid-value"),
        ("description: 3", "string-required"),
        ("tags: x", "sequence-required"),
        ("tags: [' ']", "string-required"),
        ("xrefs: ['knowledge:x']", "invalid-ref"),
        ("generated: { at: now }", "missing-key"),
        ("generated: { by: me, when: now }", "unknown-key"),
        ("verified: [{ by: ' ' }]", "string-required"),
        ("provenance: text", "mapping-required"),
        ("status: new", "invalid-value"),
        ("name: w", "unknown-key"),
        ("version: 1", "unknown-key"),
    ],
)
def test_the_envelope_is_checked(line: str, code: str) -> None:
    assert errors(markdown(f"{line}\n{STEP}")) == [(code, 2)]


def test_a_whole_envelope_passes() -> None:
    front = """
type: workflow
description: d
tags: [one, 1.10]
when_to_use: always
xrefs: [knowledge/x, other//skills/deep/y]
updated: 2026-01-01
timestamp: 2026-01-01T00:00:00Z
generated: { by: me, at: now }
verified: [{ by: a }, { by: b }]
provenance: { from: there }
status: stable
stale_after: 2027-01-01
steps:
  - id: a
"""
    plan = plan_of(markdown(front))
    assert plan.tags == ("one", "1.10")
    assert plan.description == "d"


@pytest.mark.parametrize(
    ("front", "code"),
    [
        ("params: [x]", "mapping-required"),
        ("params: { a-b: {} }", "invalid-param-name"),
        ("params: { a: string }", "mapping-required"),
        ("params: { a: }", "mapping-required"),
        ("params: { a: { type: strig } }", "invalid-schema"),
        ("params: { a: { const: 1 } }", "invalid-schema"),
        ("defaults: { retry: { max: 1, on: [timeout] } }", "unknown-key"),
        ("defaults: { engine: Bad }", "invalid-engine-name"),
        ("defaults: { timeout: 2h }", "invalid-timeout"),
        ("defaults: { llm: }", "mapping-required"),
        ("defaults: { on_error: stop }", "invalid-value"),
        ("budget: { max_units: 0 }", "out-of-range"),
        ("budget: { max_units: 10001 }", "out-of-range"),
        ("budget: { max_tokens: 1.5 }", "integer-required"),
        ("outputs: { o: { from: params.x } }", "reference-to-param"),
        ("outputs: { o: { from: steps.z.output } }", "output-unknown-step"),
        ("outputs: { o: { schema: {} } }", "missing-key"),
        ("outputs: { o: steps.a.output }", "mapping-required"),
        ("outputs: { o-p: { from: steps.a.output } }", "invalid-output-name"),
        ("outputs: { o: { from: steps.a.output, schema: { pattern: x } } }", "invalid-schema"),
    ],
)
def test_the_settings_are_checked(front: str, code: str) -> None:
    assert errors(markdown(f"{front}\n{STEP}")) == [(code, 2)]


@pytest.mark.parametrize(
    ("step", "code"),
    [
        ("- a", "step-mapping"),
        ("- unit: {}", "step-id-missing"),
        ("- { id: a, title: t }", "unknown-key"),
        ("- { id: a, uses: workflows/x }", "unknown-key"),
        ("- { id: a, gate: { max_loops: 0 } }", "out-of-range"),
        ("- { id: a, gate: { loops: 1 } }", "unknown-key"),
        ("- { id: a, inputs: [] }", "empty-list"),
        ("- { id: a, inputs: steps.a.output }", "sequence-required"),
        ("- { id: a, inputs: [params.x] }", "reference-to-param"),
        ("- { id: a, inputs: [item] }", "invalid-reference"),
        ("- { id: a, inputs: [steps.a.output] }", "input-later-step"),
        ("- { id: a, map: { over: params.x }, unit: {} }", "step-kinds"),
        ("- { id: a, map: {} }", "missing-key"),
        ("- { id: a, map: { over: params.x, concurrency: 65 } }", "out-of-range"),
        ("- { id: a, map: { over: params.x, reducer: sum } }", "invalid-value"),
        ("- { id: a, unit: { engine: a--b } }", "invalid-engine-name"),
        ("- { id: a, unit: { model: ' ' } }", "string-required"),
        ("- { id: a, unit: { timeout: 0 } }", "invalid-timeout"),
        ("- { id: a, unit: { timeout: 1.5s } }", "invalid-timeout"),
        ("- { id: a, unit: { timeout: 2147483648 } }", "invalid-timeout"),
        ("- { id: a, unit: { retry: { max: 1 } } }", "missing-key"),
        ("- { id: a, unit: { retry: { max: 101, on: [timeout] } } }", "out-of-range"),
        ("- { id: a, unit: { retry: { max: 1, on: [] } } }", "empty-list"),
        ("- { id: a, unit: { retry: { max: 1, on: [validation_error] } } }", "unknown-reason"),
        ("- { id: a, unit: { env: [''] } }", "string-required"),
        ("- { id: a, unit: { isolation: box } }", "invalid-value"),
        ("- { id: a, unit: { output: { if: {} } } }", "invalid-schema"),
        ("- { id: a, unit: { llm: { temperature: hot } } }", "invalid-llm"),
        ("- { id: a, unit: { llm: { max_tokens: 0 } } }", "invalid-llm"),
        ("- { id: a, unit: { llm: { extra_params: { Max-Tokens: 1 } } } }", "invalid-llm"),
        ("- { id: a, unit: { llm: { extra_params: { x: [{ API_KEY: k }] } } } }", "invalid-llm"),
        ("- { id: a, unit: { exec: { command: ls } } }", "command-string"),
        ("- { id: a, unit: { exec: { command: [] } } }", "argv-size"),
        ("- { id: a, unit: { exec: { command: [''] } } }", "argv-entry"),
        ("- { id: a, unit: { exec: {} } }", "missing-key"),
        ("- { id: a, unit: { exec: { command: [ls], cwd: .. } } }", "exec-cwd"),
        ("- { id: a, unit: { exec: { command: [ls], cwd: /x } } }", "exec-cwd"),
        ("- { id: a, unit: { exec: { command: [ls], cwd: 'C:\\x' } } }", "exec-cwd"),
        ("- { id: a, unit: { exec: { command: [ls], cwd: ~/x } } }", "exec-cwd"),
        ("- { id: a, unit: { exec: { command: [ls], cwd: a//b } } }", "exec-cwd"),
        ("- { id: a, unit: { exec: { command: [ls], pass_env: [A, A] } } }", "pass-env-twice"),
        ("- { id: a, unit: { exec: { command: [ls], pass_env: [1A] } } }", "pass-env-name"),
        ("- { id: a, unit: { exec: { command: [ls], inherit_env: true } } }", "inherit-env"),
        ("- { id: a, unit: { exec: { command: [ls] }, engine: e } }", "exec-with-engine"),
    ],
)
def test_a_step_is_checked(step: str, code: str) -> None:
    assert errors(markdown(f"steps:\n  {step}")) == [(code, 3)]


def test_a_wrong_id_has_no_follow_ups() -> None:
    front = "steps:\n  - id: 1a\n  - id: c\n    inputs: [steps.1a.output]"
    found = markdown(front.replace("steps.1a", "steps.a"), "## 1a\n\nx\n\n## c\n\ny\n")
    assert codes(found) == ["step-id-invalid", "input-unknown-step"]
    found = markdown("steps:\n  - unit: {}\n  - id: c\n    inputs: [steps.a.output]", "## a\n\nx\n\n## c\n\ny\n")
    assert codes(found) == ["step-id-missing"]


def test_an_id_must_be_text() -> None:
    assert codes(markdown("steps:\n  - id: 3", "## 3\n\nx\n")) == ["step-id-missing"]


def test_shape_and_reference_errors_come_in_one_pass() -> None:
    front = "version: 1\nsteps:\n  - id: a\n    title: t\n    inputs: [steps.zz.output]\n  - id: b"
    assert errors(markdown(front)) == [
        ("unknown-key", 2),
        ("unknown-key", 5),
        ("input-unknown-step", 6),
        ("section-missing", 7),
    ]


def test_an_undeclared_param_is_a_warning_also_without_a_params_block() -> None:
    found = markdown("steps:\n  - { id: a, map: { over: params.xs } }")
    assert [d.code for d in found.diagnostics] == ["undeclared-param"]
    assert found.plan is not None


ROUTES = """steps:
  - id: z
  - id: r
    route: {{ input: params.v, {} }}
  - id: a
params: {{ v: {{}} }}
"""


@pytest.mark.parametrize(
    ("route", "code"),
    [
        ("when: [{ match: x, step: z }]", "route-backward"),
        ("when: [{ match: x, step: r }]", "route-self"),
        ("when: [{ match: x, step: q }]", "route-unknown-step"),
        ("when: [{ match: x, step: a }], default: z", "route-backward"),
        ("when: { x: a }", "route-when"),
        ("when: []", "route-when"),
        ("when: [{ match: 1, step: a }, { match: '1', step: a }]", "route-duplicate"),
        ("when: [{ match: [], step: a }]", "route-match"),
        ("when: [{ step: a }]", "missing-key"),
        ("default: a", "missing-key"),
    ],
)
def test_routes_lead_forward(route: str, code: str) -> None:
    found = markdown(ROUTES.format(route), "## z\n\nz\n\n## a\n\na\n")
    assert errors(found) == [(code, 5)]


def test_a_match_that_repeats_names_the_line_of_the_first() -> None:
    found = markdown(
        ROUTES.format("when: [{ match: true, step: a }, { match: 'true', step: a }]"), "## z\nz\n## a\na\n"
    )
    assert "line 5" in found.diagnostics[0].message


def test_too_much_of_everything_is_told() -> None:
    steps = "steps:\n" + "".join(f"  - id: s{n}\n" for n in range(257))
    assert "steps-limit" in codes(markdown(steps, ""))
    params = "params:\n" + "".join(f"  p{n}: {{}}\n" for n in range(129))
    assert codes(markdown(params + STEP)) == ["params-limit"]
    inputs = ", ".join(["steps.z.output"] * 65)
    assert codes(markdown(f"steps:\n  - id: z\n  - id: a\n    inputs: [{inputs}]", "## z\nz\n## a\na\n")) == [
        "inputs-limit"
    ]
    huge = "steps:\n  - { id: a, output: { enum: [" + ", ".join(f"v{n:07}" for n in range(30_000)) + "] } }"
    assert codes(markdown(huge)) == ["invalid-schema"]
    assert codes(markdown(STEP, "## a\n\n" + "p\n" * 131_100)) == ["instructions-too-large"]


def test_the_message_of_an_unknown_key_lists_the_allowed_ones() -> None:
    message = markdown(f"foo: 1\n{STEP}").diagnostics[0].message
    assert message.startswith('Unknown workflow frontmatter key "foo". Allowed keys: type, description')
