"""The akm corpus through its own runner, one test a case; what later issues bring is in exclusions.txt."""

from __future__ import annotations

import importlib.util
import json
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import flowstone

CORPUS = Path(__file__).parent / "akm"
LATER_ISSUES = {
    "Models, agents, gates: the whole akm engine",
    "Workflows of workflows, tasks and schedules",
}


def runner() -> ModuleType:
    spec = importlib.util.spec_from_file_location("akm_run_cases", CORPUS / "run_cases.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def cases() -> dict[str, dict[str, Any]]:
    lines = (CORPUS / "cases.jsonl").read_text("utf-8").splitlines()
    return {case["id"]: case for case in map(json.loads, filter(str.strip, lines))}


def exclusions() -> dict[str, str]:
    lines = (CORPUS / "exclusions.txt").read_text("utf-8").splitlines()
    rows = [line.split("\t") for line in lines if line and not line.startswith("#")]
    return dict(rows)


CASES = cases()
EXCLUDED = exclusions()
RUNNER = runner()
AKM = [
    "env",
    f"PYTHONPATH={Path(flowstone.__file__).parents[1]}",
    sys.executable,
    "-c",
    "from flowstone.cli.akm.main import main; main()",
]


@pytest.mark.filterwarnings("ignore::ResourceWarning")  # the runner leaves closing its files to the interpreter
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # how such a warning arrives
@pytest.mark.parametrize("name", [name for name in CASES if name not in EXCLUDED])
def test_case(name: str) -> None:
    """The first difference between what the case expects and what the command did."""
    assert RUNNER.run_case(CASES[name], AKM) is None


def test_exclusions_exist() -> None:
    """An exclusion names a case of the corpus, and the issue that will bring it."""
    assert set(EXCLUDED) <= set(CASES)
    assert set(EXCLUDED.values()) <= LATER_ISSUES
