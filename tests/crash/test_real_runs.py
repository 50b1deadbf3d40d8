"""Real runs of the real command, killed at random moments (`script/soak` plays ten times as many)."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.heavy
@pytest.mark.timeout(240)
def test_twenty_runs_that_are_killed_end_like_one_that_is_not():
    environment = {**os.environ, "PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT}"}
    played = subprocess.run(
        [sys.executable, "-m", "tests.crash.rounds", "--rounds", "20", "--seed", "20"],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert played.returncode == 0, played.stdout + played.stderr
    figures = json.loads(played.stdout.splitlines()[0])
    assert figures["rounds"] == 20
    assert figures["kills_in_the_run"] >= 3
    assert figures["reused"] > 0
