"""The conformance cases that need no command line: what each file compiles to, or is refused for."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from flowstone.formats.registry import Compiled, compile_source
from flowstone.source.file import read_source

CASES = [json.loads(line) for line in (Path(__file__).parent / "orun" / "cases.jsonl").read_text().splitlines()]


def files_of(case: dict[str, Any]) -> list[str]:
    return [word for word in case["argv"][2:] if word.removeprefix("./") in case["files"]]


def compiled(case: dict[str, Any], folder: Path) -> Compiled:
    for name, text in case["files"].items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.encode())
    target = files_of(case)[0]
    path = str(folder / target)
    return compile_source(target, path, read_source(path, 1 << 20))


STATIC = [case for case in CASES if case["argv"][1] in {"validate", "digest", "view"} and files_of(case)]
RUN = [case for case in CASES if case["argv"][1] == "run" and files_of(case)]


@pytest.mark.parametrize("case", STATIC, ids=lambda case: case["id"])
def test_validate(case, tmp_path):
    found = compiled(case, tmp_path)
    said = "\n".join(diagnostic.message for diagnostic in found.diagnostics)
    assert (found.plan is not None) == (case["expect"]["exit"] == 0), said
    for text in case["expect"].get("stderr_has", []):
        assert text in said
    for line in case["expect"].get("stdout_has", []):
        assert found.digest in line


@pytest.mark.parametrize("case", RUN, ids=lambda case: case["id"])
def test_what_runs_compiles(case, tmp_path):
    found = compiled(case, tmp_path)
    said = "\n".join(diagnostic.message for diagnostic in found.diagnostics)
    if found.plan is None:
        assert case["expect"].get("exit") == 1, said
        assert not any(case["expect"].get("steps", {}).values()), said
