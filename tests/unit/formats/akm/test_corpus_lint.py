"""The lint cases of the conformance corpus, in process: what a file's diagnostics must and must not say."""

from __future__ import annotations

import importlib.util
import json
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from flowstone.diagnostics import errors_of
from flowstone.formats.akm_common.compile import compile_github, compile_markdown
from flowstone.source.file import text_of

CORPUS = Path(__file__).parents[3] / "conformance" / "akm"


def _runner() -> ModuleType:
    spec = importlib.util.spec_from_file_location("akm_run_cases", CORPUS / "run_cases.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


RUNNER = _runner()


def _lint_cases() -> Iterator[tuple[str, dict[str, str], dict[str, Any]]]:
    """Cases that lint workflow files which the case itself holds (a created file is no business of ours)."""
    for line in (CORPUS / "cases.jsonl").read_text(encoding="utf-8").splitlines():
        case = json.loads(line)
        files = {p: t for p, t in case["files"].items() if p.startswith("bundle/workflows/")}
        for step in case["steps"]:
            wants = step.get("expect") or {}
            told = any(key in wants for key in ("findings", "findings_n", "clean"))
            if told and step["argv"][:2] == ["akm", "lint"] and any(p.endswith((".md", ".yml")) for p in files):
                yield case["id"], files, wants


def _flagged(files: dict[str, str]) -> Iterator[dict[str, Any]]:
    for path, text in files.items():
        if not path.endswith((".md", ".yml")):
            continue
        compile_one = compile_markdown if path.endswith(".md") else compile_github
        compiled = compile_one(path, text_of(text.encode(), path), None)
        for found in errors_of(compiled.diagnostics):
            yield {"file": path, "line": found.place.line, "detail": found.message, "issue": found.code}


CASES = list(_lint_cases())


@pytest.mark.parametrize(("files", "wants"), [case[1:] for case in CASES], ids=[case[0] for case in CASES])
def test_findings(files: dict[str, str], wants: dict[str, Any]) -> None:
    assert list(RUNNER.check_findings(wants, {"flagged": list(_flagged(files))})) == []


def test_the_corpus_was_found() -> None:
    assert len(CASES) >= 40
