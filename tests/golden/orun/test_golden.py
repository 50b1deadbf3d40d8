"""Sources beside what they compile to: a plan as JSON, or the diagnostics, one a line.

To look at what a change does, write the new text with `flowstone plan FILE` or copy it from the
failure; the files are read by people and changed by hand.
"""

from __future__ import annotations

import json
from pathlib import Path

import msgspec
import pytest

from flowstone.formats.registry import Compiled, compile_source
from flowstone.source.file import Origin, SourceText, read_source, text_of

HERE = Path(__file__).parent


def compiled(source: Path) -> Compiled:
    return compile_source(source.name, source.name, read_source(str(source), 1 << 20), load=fetched)


def fetched(path: str) -> SourceText:
    """The one remote file that the sources nest."""
    assert path == "https://x.test/child.yaml"
    origin = Origin(path, (("ORUN_FLOW_SOURCE_URL", path),))
    return msgspec.structs.replace(text_of(CHILD, path), origin=origin)


CHILD = b"""apiVersion: orun.dev/v1
kind: Workflow
metadata: { name: child }
inputs: { a: {} }
steps: [{ name: only, run: [echo, hi] }]
"""


@pytest.mark.parametrize("source", sorted((HERE / "plans").glob("*.yaml")), ids=lambda path: path.stem)
def test_plan(source):
    plan = compiled(source).plan
    assert plan is not None
    expected = json.loads(source.with_suffix(".json").read_text())
    assert json.loads(msgspec.json.encode(plan)) == expected


@pytest.mark.parametrize("source", sorted((HERE / "refused").glob("*.yaml")), ids=lambda path: path.stem)
def test_diagnostics(source):
    lines = [f"{d.place.line}:{d.place.column} {d.code}: {d.message}" for d in compiled(source).diagnostics]
    assert lines == source.with_suffix(".txt").read_text().splitlines()
