"""Two and three drivers on one run, in any order: one drives, the others are told who does, nothing is torn."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from flowstone.drivers.journal import replay
from flowstone.run.events import AttemptEnded, DriverStarted, RunStatus
from flowstone.stores.registry import open_store
from tests.crash.one_driver import create, shared_plan
from tests.driving import RUN

ROOT = Path(__file__).parents[2]
UNITS = 14


class Drivers:
    """The drivers of one run, each started and waiting for the word to go."""

    def __init__(self, name: str, folder: Path, count: int) -> None:
        self.name, self.path, self.log = name, str(folder / "store"), folder / "log"
        create(name, self.path)
        self.running = [self.another() for _ in range(count)]

    def another(self) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, "-m", "tests.crash.one_driver", self.name, self.path, str(self.log)],
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT}"},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def go(self, driver: subprocess.Popen[str]) -> None:
        driver.stdin.write("go\n")
        driver.stdin.flush()

    def end(self, driver: subprocess.Popen[str]) -> str:
        out, _ = driver.communicate(timeout=60)
        return out.strip()

    def performed(self) -> list[str]:
        return [line.split()[0] for line in self.log.read_text().splitlines()] if self.log.exists() else []

    def journal(self):
        store = open_store(self.name, self.path)
        try:
            return list(store.read(RUN)), replay(store, RUN, shared_plan())
        finally:
            store.close()


@pytest.fixture
def drivers(tmp_path):
    made = []

    def making(name, count):
        made.append(Drivers(name, tmp_path, count))
        return made[-1]

    yield making
    for each in made:
        for driver in each.running:
            with contextlib.suppress(ProcessLookupError):
                driver.kill()
            driver.wait()
            driver.stdin.close()
            driver.stdout.close()


@pytest.mark.parametrize("count", [2, 3])
@pytest.mark.parametrize("name", ["sqlite", "directory"])
def test_one_drives_and_the_others_are_told(drivers, name, count):
    made = drivers(name, count)
    order = random.Random(count).sample(made.running, count)
    for driver in order:
        made.go(driver)
    words = sorted(made.end(driver) for driver in order)
    entries, state = made.journal()
    assert words[-1].startswith("succeeded")
    assert set(words[:-1]) <= {"held", "succeeded 0"}
    assert state.status is RunStatus.SUCCEEDED
    assert sorted(made.performed()) == sorted(set(made.performed()))
    assert len(made.performed()) == UNITS
    assert len([entry for entry in entries if isinstance(entry.event, DriverStarted)]) == 1
    assert [entry.seq for entry in entries] == list(range(1, len(entries) + 1))


@pytest.mark.parametrize("seed", [1, 2, 3])
@pytest.mark.parametrize("name", ["sqlite", "directory"])
def test_when_the_one_that_drives_is_killed_another_goes_on_at_once(drivers, name, seed):
    chance = random.Random(seed)
    made = drivers(name, 3)
    first, second, third = made.running
    made.go(first)
    deadline = time.monotonic() + 20
    while len(made.performed()) < chance.randint(1, 8) and time.monotonic() < deadline:
        time.sleep(0.002)
    first.send_signal(signal.SIGKILL)
    first.wait()
    for driver in chance.sample([second, third], 2):
        made.go(driver)
    words = [made.end(driver) for driver in (second, third)]
    entries, state = made.journal()
    assert any(word.startswith("succeeded") for word in words)
    assert state.status is RunStatus.SUCCEEDED
    assert state.steps["m"].artifact == list(range(12))
    assert [entry.seq for entry in entries] == list(range(1, len(entries) + 1))
    ended = [entry.event.unit for entry in entries if isinstance(entry.event, AttemptEnded)]
    assert sorted(ended) == sorted(set(ended)), "a unit whose outcome was durable was performed again"
    assert len(set(made.performed())) == UNITS


def test_a_suspended_driver_is_never_robbed(drivers):
    made = drivers("sqlite", 2)
    first, second = made.running
    made.go(first)
    while not made.performed():
        time.sleep(0.002)
    first.send_signal(signal.SIGSTOP)
    try:
        made.go(second)
        assert made.end(second) == "held"
    finally:
        first.send_signal(signal.SIGCONT)
    assert made.end(first).startswith("succeeded")
    assert len(made.performed()) == UNITS
