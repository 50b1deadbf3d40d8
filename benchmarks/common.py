"""What the benchmarks share: a ground of its own for each, measured commands, and rounds of several sides.

A side is measured in turn with the others, round after round, so that a busy machine slows all of
them alike; what is printed are ratios of medians.
"""

from __future__ import annotations

import contextlib
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

AKM = [sys.executable, "-c", "from flowstone.cli.akm.main import main; main()"]
ORUN = [sys.executable, "-c", "from flowstone.cli.orun.main import main; main()"]
PASS = [sys.executable, "-c", "pass"]


class Cost(NamedTuple):
    """Seconds of wall clock and of CPU (that of waited-for children included), and the peak in MiB."""

    wall: float
    cpu: float
    peak: float


class Ground:
    """A folder to work in, with a configuration and data of its own."""

    def __init__(self, folder: str) -> None:
        self.folder = folder
        self.env = {**os.environ, "NO_COLOR": "1", "HOME": folder}
        for name in ("CONFIG", "DATA", "STATE", "CACHE"):
            self.env[f"AKM_{name}_DIR"] = os.path.join(folder, name.lower())
        self.env.pop("PYTHONDONTWRITEBYTECODE", None)

    def write(self, name: str, text: str) -> str:
        path = os.path.join(self.folder, name)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        return path

    def configure(self, **workflow: int) -> None:
        os.makedirs(self.env["AKM_CONFIG_DIR"], exist_ok=True)
        self.write("config/config.json", json.dumps({"workflow": workflow}))

    def measure(self, argv: Sequence[str], given: str | None = None) -> Cost:
        """Run a command to its end; one that fails ends the benchmark with what it said."""
        out = os.path.join(self.folder, "said.txt")
        with open(out, "wb") as said, _source(given) as source:
            started = time.perf_counter()
            process = subprocess.Popen(argv, cwd=self.folder, env=self.env, stdin=source, stdout=said, stderr=said)
            _, status, usage = os.wait4(process.pid, 0)
            wall = time.perf_counter() - started
            process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode:
            with open(out, encoding="utf-8") as file:
                sys.exit(f"{' '.join(argv)[:200]} exited {process.returncode}:\n{file.read()[-2000:]}")
        return Cost(
            wall, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / (1 << 10 if sys.platform == "linux" else 1 << 20)
        )

    def said(self) -> str:
        with open(os.path.join(self.folder, "said.txt"), encoding="utf-8") as file:
            return file.read()


@contextlib.contextmanager
def ground() -> Iterator[Ground]:
    with tempfile.TemporaryDirectory(prefix="flowstone-bench-") as folder:
        yield Ground(folder)


def in_turn(rounds: int, sides: Mapping[str, Callable[[], Cost]]) -> dict[str, list[Cost]]:
    """Measure every side once a round, each once before without counting it."""
    costs: dict[str, list[Cost]] = {name: [] for name in sides}
    for number in range(rounds + 1):
        for name, side in sides.items():
            cost = side()
            if number:
                costs[name].append(cost)
    return costs


def wall(costs: Sequence[Cost]) -> float:
    return statistics.median(cost.wall for cost in costs)


def cpu(costs: Sequence[Cost]) -> float:
    return statistics.median(cost.cpu for cost in costs)


def peak(costs: Sequence[Cost]) -> float:
    return max(cost.peak for cost in costs)


def show(what: str, ratio: float, aim: float, most: float | None, figures: str) -> None:
    bound = f"aim {aim:g}" + (f", at most {most:g}" if most is not None else "")
    print(f"{what}: {ratio:.2f} ({bound}; {figures})", flush=True)


def seconds(costs: Sequence[Cost]) -> str:
    """Median of the wall clock with the spread of the rounds."""
    walls = sorted(cost.wall for cost in costs)
    return f"{wall(costs):.3f} s [{walls[0]:.3f}–{walls[-1]:.3f}]"


def rounds_wanted(default: int) -> int:
    return int(sys.argv[1]) if len(sys.argv) > 1 else default


def xargs(ground: Ground, count: int, width: int) -> Cost:
    """The same number of `true`, started by xargs."""
    lines = "".join(f"{number}\n" for number in range(count))
    return ground.measure(["xargs", f"-P{width}", "-n1", "true"], given=lines)


@contextlib.contextmanager
def _source(given: str | None) -> Iterator[int]:
    if given is None:
        yield subprocess.DEVNULL
        return
    with tempfile.TemporaryFile() as file:
        file.write(given.encode())
        file.seek(0)
        yield os.dup(file.fileno())
