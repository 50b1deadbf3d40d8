"""A command's section that holds nothing but an empty gate is begun, not wrong."""

from __future__ import annotations

import pytest

from flowstone.formats.registry import compile_source
from flowstone.source.file import text_of

SOURCE = "---\nsteps:\n  - id: a\n    {unit}\n---\n\n## a\n\n### gate\n\n{rubric}\n"
COMMAND = "unit: {{ exec: {{ command: [echo] }} }}".replace("{{", "{").replace("}}", "}")


@pytest.mark.parametrize(
    ("unit", "rubric", "severity"),
    [(COMMAND, "", "warning"), (COMMAND, "good", "error"), ("unit: {}", "", "error")],
)
def test_only_a_command_with_an_empty_gate_is_warned_about(unit, rubric, severity):
    source = text_of(SOURCE.format(unit=unit, rubric=rubric).encode(), "w.md")
    found = [d for d in compile_source("w.md", "w.md", source).diagnostics if d.code == "section-empty"]
    assert [d.severity for d in found] == [severity]
