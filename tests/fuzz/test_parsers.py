"""Each parser against random and mutated texts, five seconds in all (`script/soak` gives each a minute)."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from tests.fuzz.fuzzers import FUZZERS, ROOT

SECONDS = 5 / len(FUZZERS)


@pytest.mark.parametrize("name", FUZZERS)
def test_a_parser_accepts_or_refuses(name):
    ended = subprocess.run(
        [sys.executable, "-m", "tests.fuzz.fuzzers", name, str(SECONDS)],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT}"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr[-6_000:]
    assert json.loads(ended.stdout)["inputs"] > 0
