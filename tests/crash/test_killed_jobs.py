"""A planned job with a workflow and an approval whose driver is killed, again and again, until it has come to its end."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from flowstone.api import Flowstone
from flowstone.api.jobs import plan_job
from flowstone.errors import UnknownRun

ROOT = Path(__file__).parents[2]
JOB = """\
apiVersion: orun.dev/v1
kind: Job
metadata: { name: killed }
steps:
  - { name: a, run: echo a >> ran; sleep 0.1; echo a >> done }
  - { name: w, workflow: flow.yaml, with: { here: HERE } }
  - { name: ok, approval: { prompt: "Go on?", timeout: 600ms, onTimeout: approve } }
  - { name: z, run: echo z >> ran; sleep 0.1; echo z >> done }
"""
FLOW = """\
apiVersion: orun.dev/v1
kind: Workflow
metadata: { name: flow }
inputs: { here: { type: string } }
steps:
  - { name: b, run: [sh, -c, "cd {{ inputs.here }}; echo b >> ran; sleep 0.1; echo b >> done"] }
  - { name: c, needs: [b], run: [sh, -c, "cd {{ inputs.here }}; echo c >> ran; sleep 0.1; echo c >> done"] }
"""
NAMES = ["a", "b", "c", "z"]


class Killed:
    """One job in a folder, and the drivers that come and go."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.env = {
            "PATH": os.environ["PATH"],
            "HOME": str(folder),
            "XDG_DATA_HOME": str(folder / "data"),
            "PYTHONPATH": str(ROOT / "src"),
        }
        (folder / "job.yaml").write_text(JOB.replace("HERE", str(folder)))
        (folder / "flow.yaml").write_text(FLOW)
        with self.flow() as flow:
            (folder / "plan.json").write_text(plan_job(flow, "job.yaml", ""))

    def flow(self) -> Flowstone:
        return Flowstone(str(self.folder), self.env)

    def state(self):
        with self.flow() as flow:
            try:
                return flow.status(flow.last()).state
            except UnknownRun:
                return None

    def settled(self) -> dict[str, int]:
        """The commands that the journals say have succeeded, with how often each was begun by now."""
        with self.flow() as flow:
            view = flow.status(flow.last())
            states = [view.state, *(flow.status(child.row.record.id).state for child in view.children)]
        ran = self.lines("ran")
        return {s.id: ran.count(s.id) for state in states for s in state.order if s.status == "succeeded"}

    def driver(self) -> subprocess.Popen[bytes]:
        state = self.state()
        words = ["run"] if state is None else ["run", "--resume", state.run_id]
        with (self.folder / "log").open("ab") as log:
            return subprocess.Popen(
                [sys.executable, "-c", "from flowstone.cli.orun.main import main; main()", *words],
                cwd=self.folder,
                env=self.env,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )

    def lines(self, name: str) -> list[str]:
        path = self.folder / name
        return path.read_text().split() if path.exists() else []


@pytest.mark.parametrize("seed", [1, 2])
def test_a_job_comes_to_its_end_whenever_its_driver_is_killed(tmp_path, seed):
    job, chance = Killed(tmp_path), random.Random(seed)
    settled: dict[str, int] = {}
    for _ in range(4):
        driver, before = job.driver(), len(job.lines("ran"))
        deadline = time.monotonic() + 20
        while driver.poll() is None and len(job.lines("ran")) == before and time.monotonic() < deadline:
            time.sleep(0.01)
        time.sleep(chance.uniform(0, 0.25))
        driver.send_signal(signal.SIGKILL)
        driver.wait()
        assert settled.items() <= job.settled().items(), "what had succeeded was begun again"
        settled = job.settled()
    assert job.driver().wait(timeout=60) == 0, (tmp_path / "log").read_text()
    state = job.state()
    assert {step.id: step.status.value for step in state.order} == dict.fromkeys(("a", "w", "ok", "z"), "succeeded")
    assert state.steps["ok"].artifact["by"] == "timeout"
    assert settled.items() <= job.settled().items()
    assert list(dict.fromkeys(job.lines("done"))) == NAMES
