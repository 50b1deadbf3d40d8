"""The orun corpus through its own runner, one test a case; what later issues bring is in exclusions.txt."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from tests.conformance.programs import exclusions, write_program

CORPUS = Path(__file__).parent / "orun"
LATER_ISSUES = {"The whole orun engine, and workflows pinned into plans"}


def runner() -> ModuleType:
    spec = importlib.util.spec_from_file_location("orun_run_cases", CORPUS / "run_cases.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


RUNNER = runner()
CASES: dict[str, dict[str, Any]] = {
    case["id"]: case
    for line in (CORPUS / "cases.jsonl").read_text("utf-8").split("\n")
    if line.strip()
    for case in [RUNNER.parse(line)]
}
EXCLUDED = exclusions(CORPUS)


@pytest.fixture(scope="session")
def orun(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    return [str(write_program(tmp_path_factory.mktemp("bin"), "orun"))]


@pytest.mark.parametrize("name", [name for name in CASES if name not in EXCLUDED])
def test_case(name: str, orun: list[str]) -> None:
    """The first difference between what the case expects and what the command did."""
    assert RUNNER.run_case(CASES[name], orun) is None


def test_exclusions_exist() -> None:
    """An exclusion names a case of the corpus, and the issue that will bring it."""
    assert set(EXCLUDED) <= set(CASES)
    assert set(EXCLUDED.values()) <= LATER_ISSUES
