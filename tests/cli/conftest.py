"""Real processes of the three commands, each in an environment of its own."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[2] / "src"


@pytest.fixture
def environment(tmp_path):
    env = {f"AKM_{name.upper()}_DIR": str(tmp_path / name) for name in ("config", "data", "state", "cache", "bundle")}
    (tmp_path / "project").mkdir()
    return {
        **env,
        "PATH": os.environ["PATH"],
        "HOME": str(tmp_path / "home"),
        "LANG": "C.UTF-8",
        "PYTHONPATH": str(SOURCE),
    }


@pytest.fixture
def run(tmp_path, environment):
    """Run a command to its end; returns the completed process with text output."""

    def call(program, *argv, stdout=subprocess.PIPE, **variables):
        code = f"from flowstone.cli.{program}.main import main; main()"
        return subprocess.run(
            [sys.executable, "-c", code, *argv],
            cwd=tmp_path / "project",
            env={**environment, **variables},
            stdin=subprocess.DEVNULL,
            stdout=stdout,
            stderr=subprocess.PIPE,
            text=True,
            encoding="utf-8",
            timeout=60,
            check=False,
        )

    return call
