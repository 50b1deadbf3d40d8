"""A fan-out as wide as one may be stays small: a run of its own process, with all its units in the journal."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
RUN = """
from pathlib import Path
from flowstone.testing.plans import fan_out, spine
from tests.driving import driven
bench = driven(spine(fan_out("m", "params.l", width=64)), params={"l": list(range(10_000))})
assert bench.state.status == "succeeded" and len(bench.artifact("m")) == 10_000
peak = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM"))
print(int(peak.split()[1]) // 1024)
"""


@pytest.mark.heavy
def test_ten_thousand_units_need_less_than_200_mib():
    environment = {**os.environ, "PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT}"}
    ran = subprocess.run([sys.executable, "-c", RUN], env=environment, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    assert int(ran.stdout) < 200
