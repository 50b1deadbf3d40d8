"""Runs a wide workflow again and again: `python -m tests.crash.width --runs 100`.

Each run has many independent steps, and each step must be there afterwards: in the journal, and as a
whole state file with what it printed. Never may more run at a time than `maxParallel` allows. Prints
one JSON object with figures and each mistake on a line of its own; exits 1 when there is one.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from flowstone.api import Flowstone
from flowstone.run.events import AttemptEnded, AttemptStarted

PROGRAM = "from flowstone.cli.orun.main import main; main()"
HEAD = """apiVersion: orun.dev/v1
kind: Workflow
metadata: {{ name: wide }}
outputs: {{ last: "steps.s{last}.outputs.said" }}
maxParallel: {parallel}
steps:
"""
STEP = """  - name: s{number}
    run: [sh, -c, "echo out {number}; echo err {number} >&2"]
    outputs: {{ said: "stdout.trim()" }}
"""


def source(steps: int, parallel: int) -> str:
    head = HEAD.format(last=steps - 1, parallel=parallel)
    return head + "".join(STEP.format(number=number) for number in range(steps))


def one_run(folder: Path, steps: int, parallel: int) -> tuple[list[str], float, int]:
    """What was wrong with a run, how long it took, and how many commands ran at one time."""
    folder.mkdir(parents=True)
    (folder / "wide.yaml").write_text(source(steps, parallel))
    started = time.monotonic()
    ended = subprocess.run(
        [sys.executable, "-c", PROGRAM, "workflow", "run", "wide.yaml"],
        cwd=folder,
        env={**os.environ, "HOME": str(folder)},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    took = time.monotonic() - started
    mistakes = [f"exit {ended.returncode}: {ended.stderr[-300:]}"] if ended.returncode or ended.stderr else []
    mistakes += [f"not printed: {text}" for text in _unprinted(ended.stdout, steps)]
    runs = list((folder / ".orun" / "wfruns").iterdir())
    if len(runs) != 1:
        return [*mistakes, f"{len(runs)} run folders"], took, 0
    mistakes += _lost_files(runs[0], steps)
    found, width = _journal(folder, runs[0].name, steps)
    if width > parallel:
        mistakes.append(f"{width} at a time")
    return mistakes + found, took, width


def _unprinted(text: str, steps: int) -> list[str]:
    lines = text.splitlines()
    wanted = {f"    s{number} │ {stream} {number}" for number in range(steps) for stream in ("out", "err")}
    wanted |= {f"  - s{number}: succeeded" for number in range(steps)} | {f"  last = out {steps - 1}"}
    return sorted(wanted - set(lines))


def _lost_files(run: Path, steps: int) -> list[str]:
    """State files that are missing, damaged, or hold something else than what happened."""
    mistakes = []
    names = {path.name for path in (run / "steps").iterdir()}
    if names != {f"s{number}.json" for number in range(steps)}:
        mistakes.append(f"{len(names)} files in steps/")
    for number in range(steps):
        expected: Any = {"name": f"s{number}", "status": "succeeded", "outputs": {"said": f"out {number}"}}
        expected |= {"stdout": f"out {number}\n", "stderr": f"err {number}\n", "attempts": 1}
        if (found := _loaded(run / "steps" / f"s{number}.json")) != expected:
            mistakes.append(f"s{number}.json: {found}")
    if _loaded(run / "result.json") != {"status": "succeeded", "outputs": {"last": f"out {steps - 1}"}}:
        mistakes.append("result.json")
    if not isinstance(_loaded(run / "metadata.json"), dict):
        mistakes.append("metadata.json")
    return mistakes


def _loaded(path: Path) -> Any:
    try:
        return json.loads(path.read_text())
    except (OSError, ValueError) as error:
        return str(error)


def _journal(folder: Path, run_id: str, steps: int) -> tuple[list[str], int]:
    """What is wrong in the journal of a run, and the largest number of attempts at one time."""
    running = widest = ends = 0
    with Flowstone(str(folder), {"HOME": str(folder), "PATH": os.environ["PATH"]}) as flow:
        for _, _, event in flow.events(run_id):
            if isinstance(event, AttemptStarted):
                running += 1
                widest = max(widest, running)
            elif isinstance(event, AttemptEnded):
                running -= 1
                ends += 1
    return ([] if ends == steps and running == 0 else [f"{ends} ends of attempts, {running} open"]), widest


def rounds(runs: int, steps: int, parallel: int) -> tuple[dict[str, Any], list[str]]:
    """Figures and mistakes of so many runs."""
    mistakes: list[str] = []
    times, widths = [], []
    base = Path(tempfile.mkdtemp(prefix="width-"))
    try:
        for number in range(runs):
            folder = base / f"r{number}"
            found, took, width = one_run(folder, steps, parallel)
            mistakes += [f"run {number}: {text}" for text in found]
            times.append(took)
            widths.append(width)
            shutil.rmtree(folder)
    finally:
        shutil.rmtree(base, ignore_errors=True)
    times.sort()
    figures = {
        "runs": runs,
        "steps": steps,
        "parallel": parallel,
        "widest": max(widths, default=0),
        "seconds": {"median": round(times[len(times) // 2], 2), "worst": round(times[-1], 2)},
        "peak_mib_of_a_run": resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss // 1024,
        "mistakes": len(mistakes),
    }
    return figures, mistakes


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=100)
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--parallel", type=int, default=16)
    given = parser.parse_args()
    figures, mistakes = rounds(given.runs, given.steps, given.parallel)
    print(json.dumps(figures))
    for text in mistakes[:50]:
        print(text)
    return 1 if mistakes else 0


if __name__ == "__main__":
    sys.exit(main())
