"""Faults seen in public trackers, one test each through its own script; later issues are in exclusions.txt.

A script that skips itself counts as failed: it has shown nothing.
"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from tests.conformance.programs import exclusions, write_program

CORPUS = Path(__file__).parent / "reports"
HEAVY = {"R016", "R058", "R065", "R067", "R070", "R076", "R089"}
LIMIT_S = 330
LATER_ISSUES = {
    "Models, agents, gates: the whole akm engine",
    "The whole orun engine, and workflows pinned into plans",
    "Workflows of workflows, tasks and schedules",
    "The page",
}
CASES = sorted(path.parent.name for path in CORPUS.glob("*/run.sh"))
EXCLUDED = exclusions(CORPUS)


@pytest.fixture(scope="session")
def programs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    folder = tmp_path_factory.mktemp("bin")
    return {"WF": str(write_program(folder, "flowstone")), "AKM": str(write_program(folder, "akm"))}


def case(name: str) -> object:
    return pytest.param(name, marks=[pytest.mark.heavy] if name in HEAVY else [])


@pytest.mark.timeout(LIMIT_S + 20)
@pytest.mark.parametrize("name", [case(name) for name in CASES if name not in EXCLUDED])
def test_report(name: str, programs: dict[str, str], tmp_path: Path) -> None:
    """The script finds no fault; what it says otherwise is the failure."""
    environment = {**os.environ, **programs, "TMPDIR": str(tmp_path)}
    ended = subprocess.run(
        ["bash", str(CORPUS / name / "run.sh")],
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        errors="replace",
        timeout=LIMIT_S,
        check=False,
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr


def test_exclusions_exist() -> None:
    """An exclusion names a case of the corpus, and the issue that will bring it."""
    assert set(EXCLUDED) <= set(CASES)
    assert set(EXCLUDED.values()) <= LATER_ISSUES
