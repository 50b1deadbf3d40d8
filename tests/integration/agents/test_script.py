"""script/agents on a machine without Node."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from tests.integration.agents import programs

ROOT = Path(__file__).parents[3]
NEEDED = ("bash", "cat", "cksum", "dirname")


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """The script and what it reads, and a PATH without node and npm."""
    for name in ("script/agents", "tests/integration/agents/packages/package-lock.json"):
        (tmp_path / name).parent.mkdir(parents=True)
        shutil.copy(ROOT / name, tmp_path / name)
    shutil.copy(ROOT / "tests/integration/agents/packages/.npmrc", tmp_path / "tests/integration/agents/packages")
    (tmp_path / "bin").mkdir()
    for name in NEEDED:
        found = shutil.which(name)
        assert found is not None
        (tmp_path / "bin" / name).symlink_to(found)
    return tmp_path


def test_a_machine_without_node_gets_a_sentence(checkout: Path) -> None:
    bash = checkout / "bin" / "bash"
    done = subprocess.run(
        [bash, checkout / "script" / "agents"],
        env={"PATH": str(checkout / "bin")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("script/agents: needs Node 20 or newer, with npm, to install the agent programs")
    assert len(done.stderr.splitlines()) == 1


def test_a_program_that_is_not_installed_is_no_skip(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(programs, "INSTALLED", tmp_path)
    with pytest.raises(FileNotFoundError, match=r"claude is not installed below .*: run script/agents"):
        _ = programs.PROGRAMS["claude"].path


def test_the_lock_names_no_addresses() -> None:
    text = (ROOT / "tests/integration/agents/packages/package-lock.json").read_text()
    assert "://" not in text
    assert '"resolved"' not in text
