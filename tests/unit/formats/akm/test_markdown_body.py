"""The body of a Markdown workflow: headings, instructions, rubrics and the preamble."""

from __future__ import annotations

from tests.unit.formats.akm.compiling import codes, errors, markdown, plan_of

STEPS = "steps:\n  - id: a\n  - id: b"


def test_instructions_keep_their_inner_bytes() -> None:
    body = "# Title\n\nWords.\n\n## a\n\n\n  Do  a.\n\n```\n## b\n```\n# not a title\n\n\n## b ##\nDo b."
    plan = plan_of(markdown(STEPS, body))
    assert plan.title == "Title"
    assert plan.preamble == "# Title\n\nWords."
    assert plan.steps[0].instructions == "  Do  a.\n\n```\n## b\n```\n# not a title"
    assert plan.steps[1].instructions == "Do b."


def test_the_gate_runs_to_the_end_of_the_section() -> None:
    body = "## a\nDo.\n\n### Gate\n\nprose\n\n### gate\n\nOne.\n\n### more\n\nTwo.\n\n## b\nb\n\n### gate\n\n \n"
    plan = plan_of(markdown(STEPS, body))
    gate = plan.steps[0].gate
    assert gate is not None
    assert (gate.rubric, gate.max_loops) == ("One.\n\n### more\n\nTwo.", 1)
    assert plan.steps[0].instructions == "Do.\n\n### Gate\n\nprose"
    assert plan.steps[1].gate is None


def test_headings_must_be_step_ids() -> None:
    found = markdown(STEPS, "## Step: a\n\nx\n\n## b\n\ny\n\n## b\n\nz\n")
    assert errors(found) == [("section-missing", 3), ("unknown-section", 7), ("section-twice", 15)]


def test_a_section_needs_instructions_beside_its_rubric() -> None:
    assert errors(markdown(STEPS, "## a\n\n### gate\n\nx\n\n## b\n\n \n")) == [
        ("section-empty", 7),
        ("section-empty", 13),
    ]


def test_one_gate_a_section() -> None:
    assert codes(markdown(STEPS, "## a\nx\n### gate\ny\n### gate\nz\n## b\nb\n")) == ["gate-twice"]


def test_the_title_has_no_workflow_prefix() -> None:
    found = markdown(STEPS, "# Workflow: Ship\n\n## a\na\n## b\nb\n")
    assert errors(found) == [("title-prefix", 7)]
    assert found.diagnostics[0].hint == "write # Ship"


def test_a_route_step_needs_no_section() -> None:
    front = (
        "params: { v: {} }\nsteps:\n  - id: r\n    route: { input: params.v, when: [{ match: x, step: a }] }\n  - id: a"
    )
    plan = plan_of(markdown(front))
    assert plan.steps[0].instructions is None
    assert plan.steps[1].selected_by == ("r",)


def test_prose_is_never_templated() -> None:
    plan = plan_of(markdown("steps:\n  - id: a", "## a\n\nSay ${{ x }} and {{ y }} and $ARGUMENTS.\n"))
    assert plan.steps[0].unit.spec.content == "Say ${{ x }} and {{ y }} and $ARGUMENTS."
