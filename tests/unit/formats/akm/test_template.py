"""The file that `akm workflow create` writes."""

from __future__ import annotations

import pytest

from flowstone.formats.akm_common.compile import compile_markdown
from flowstone.formats.akm_common.dialect import template
from flowstone.source.file import text_of


@pytest.mark.parametrize("name", ["fresh", "a/nested-name", "x_y"])
def test_it_lints_clean(name: str) -> None:
    text = template(name, "2026-01-31", "file:///schemas/akm-workflow.json")
    compiled = compile_markdown("w.md", text_of(text.encode(), "w.md"), None)
    assert compiled.diagnostics == ()
    assert "# yaml-language-server: $schema=file:///schemas/akm-workflow.json\n" in text
    assert "updated: 2026-01-31\n" in text


def test_its_title_is_the_name_in_words() -> None:
    assert "\n# Nested Name\n" in template("a/nested-name", "2026-01-31")
