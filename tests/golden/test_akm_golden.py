"""Sources beside what they compile to: a plan as JSON, or the diagnostics as people read them.

After a wanted change run `python -m tests.golden.test_akm_golden` and look at the difference.
"""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from flowstone.formats.registry import compiler_of, format_of
from flowstone.source.file import text_of
from flowstone.source.report import render_text
from flowstone.values import pretty_json

HERE = Path(__file__).parent
SOURCES = sorted(
    path
    for folder in ("akm_markdown", "akm_github")
    for path in (HERE / folder).glob("*.*")
    if path.suffix in {".md", ".yml"}
)


def outcome(path: Path) -> tuple[Path, str]:
    """The file that belongs to a source, and what it must hold."""
    source = text_of(path.read_bytes(), path.name)
    compiled = compiler_of(format_of(path.name, source.text))(path.name, source, lambda name: source)
    if compiled.plan is None:
        return path.with_suffix(".txt"), render_text(path.name, source.text, compiled.diagnostics)
    return path.with_suffix(".json"), pretty_json(msgspec.to_builtins(compiled.plan)) + "\n"


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: path.name)
def test_golden(path: Path) -> None:
    beside, text = outcome(path)
    assert beside.read_text(encoding="utf-8") == text


def test_there_are_sources() -> None:
    assert len(SOURCES) >= 6


if __name__ == "__main__":
    for each in SOURCES:
        beside, text = outcome(each)
        beside.write_text(text, encoding="utf-8")
