"""Kills real runs at random moments and resumes them: `python -m tests.crash.rounds --rounds 20`.

A round starts `flowstone run`, sends SIGKILL to the driver one to three times, resumes after each, and
then compares with a run that nothing disturbed. Prints one JSON object with figures, and each
mistake on a line of its own; exits 1 when there is one. Everything that a driver started must be gone soon after
it: the process makes itself the reaper of all its descendants, so that it sees each of them end.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from flowstone.api import Flowstone
from flowstone.errors import UnknownRun
from flowstone.plan.units import ExecSpec
from flowstone.run.events import RunStatus

PROGRAM = "from flowstone.cli.{0}.main import main; main()"
SUBREAPER = 36
ENDED_WITHIN_S = 12.0

UNIT = """\
name=${1:-$AKM_ITEM}
echo "$$ $name" >> "$HERE/starts"
case $name in *retry*) if [ ! -e "$HERE/tried.$name" ]; then : > "$HERE/tried.$name"; exit 1; fi ;; esac
sleep 0.0$((1 + $$ % 5))
echo "did $name"
"""

SPINE = """\
---
type: workflow
description: A map between two steps
params:
  items: { type: array }
steps:
  - id: first
    unit: { exec: { command: [sh, unit.sh, first], pass_env: [HERE] } }
  - id: each
    map:
      over: params.items
      concurrency: 4
      unit:
        exec: { command: [sh, unit.sh], pass_env: [HERE] }
        retry: { max: 3, on: [non_zero_exit] }
  - id: last
    inputs: [steps.each.output]
    unit: { exec: { command: [sh, unit.sh, last], pass_env: [HERE] } }
outputs:
  all: { from: steps.each.output }
---
## first
Begin.
## each
Do one.
## last
End.
"""

LEVELS = 5
LEAF = """\
---
type: workflow
description: The innermost
steps:
  - id: a5
    unit: { exec: { command: [sh, unit.sh, a5], pass_env: [HERE] } }
  - id: z5
    unit: { exec: { command: [sh, unit.sh, z5], pass_env: [HERE] } }
outputs:
  said: { from: steps.z5.output }
---
## a5
Begin.
## z5
End.
"""

ITEMS = [f"i{n}" for n in range(9)] + ["i1", "retry"]


def dag_source() -> str:
    steps = [
        ("a", ""),
        *((f"b{n}", "a") for n in range(6)),
        ("retry", "a"),
        ("z", ", ".join(f"b{n}" for n in range(6))),
    ]
    lines = ["apiVersion: orun.dev/v1", "kind: Workflow", "metadata: {name: kill}", "maxParallel: 3"]
    lines += ["inputs: {here: {type: string, required: true}}", 'outputs: {z: "steps.z.outputs.said"}', "steps:"]
    for name, needs in steps:
        lines += [
            f"  - name: {name}",
            f"    needs: [{needs}]",
            f'    run: [sh, "{{{{ inputs.here }}}}/unit.sh", {name}]',
            "    envInherit: [HERE]",
            "    retry: {maxRetries: 3, baseDelay: 1ms}",
            '    outputs: {said: "stdout.trim()"}',
        ]
    return "\n".join(lines) + "\n"


def level_source(level: int, folder: Path) -> str:
    """A workflow that does one thing, composes the level below it, and does another."""
    steps = [(f"a{level}", f"run: sh unit.sh a{level}"), (f"c{level}", f"uses: workflows/l{level + 1}")]
    lines = [f"name: L{level}", "on: { workflow_dispatch: {} }", "jobs:", "  j:", "    runs-on: [self-hosted]"]
    lines.append("    steps:")
    for step, text in [*steps, (f"z{level}", f"run: sh unit.sh z{level}")]:
        lines += [f"      - id: {step}", f"        {text}"]
        lines += [f"        env: {{ HERE: {json.dumps(str(folder))} }}"] if text.startswith("run") else []
    return "\n".join(lines) + "\n"


class Round:
    """One folder with one run, and the drivers that come and go."""

    def __init__(self, folder: Path, language: str) -> None:
        self.folder = folder
        self.language = language
        self.env = {
            **{name: value for name, value in os.environ.items() if not name.startswith(("AKM_", "XDG_"))},
            "HERE": str(folder),
            "XDG_DATA_HOME": str(folder / "data"),
            "XDG_CONFIG_HOME": str(folder / "config"),
            "XDG_CACHE_HOME": str(folder / "cache"),
            "XDG_STATE_HOME": str(folder / "state"),
            "AKM_BUNDLE_DIR": str(folder / "bundle"),
        }
        folder.mkdir(parents=True)
        (folder / "unit.sh").write_text(UNIT)
        self._write()
        self.call("akm", "config", "set", "workflow.hostConcurrency", "4")

    def _write(self) -> None:
        if self.language == "family":
            workflows = self.folder / "bundle" / "workflows"
            workflows.mkdir(parents=True)
            for level in range(LEVELS):
                (workflows / f"l{level}.yml").write_text(level_source(level, self.folder))
            (workflows / f"l{LEVELS}.md").write_text(LEAF)
            return
        self.file = self.folder / ("kill.md" if self.language == "spine" else "kill.yaml")
        self.file.write_text(SPINE if self.language == "spine" else dag_source())

    def start(self) -> subprocess.Popen[bytes]:
        if self.language == "family":
            return self._spawn("flowstone", "run", "workflows/l0")
        given = f"items={json.dumps(ITEMS)}" if self.language == "spine" else f"here={self.folder}"
        return self._spawn("flowstone", "run", self.file.name, "--set", given)

    def resume(self) -> subprocess.Popen[bytes]:
        return self._spawn("flowstone", "resume", "--last")

    def call(self, command: str, *words: str) -> None:
        process = self._spawn(command, *words)
        if process.wait() != 0:
            raise SystemExit(f"{command} {' '.join(words)}: {(self.folder / 'log').read_text()[-2000:]}")

    def state(self) -> Any:
        """The run's state by its journal, or None while there is no run."""
        return next(iter(self.states()), None)

    def states(self) -> list[Any]:
        """The states of the run and of those that it nests, the outer ones first; none while there is no run."""
        with Flowstone(str(self.folder), self.env) as flow:
            try:
                waiting = [flow.last()]
            except UnknownRun:
                return []
            found = []
            while waiting:
                view = flow.status(waiting.pop())
                found.append(view.state)
                waiting += [child.row.record.id for child in view.children]
            return found

    def result(self) -> dict[str, Any]:
        return {
            "status": self.state().status,
            "outputs": self.state().outputs,
            "steps": [
                {step.id: [step.status, step.artifact if _runs_a_command(step) else None] for step in state.order}
                for state in self.states()
            ],
        }

    def done(self) -> list[str]:
        """The names of the units that the journal says are done; equal items count each for itself."""
        found = []
        for step in [step for state in self.states() for step in state.order if _runs_a_command(step)]:
            for attempt in step.attempts.values():
                if attempt.outcome is not None and attempt.outcome.ok:
                    found.append(ITEMS[attempt.index] if step.fans_out else step.id)
        return found

    def starts(self) -> list[tuple[int, str]]:
        """The pid and name of each command that was started; a line that a kill cut off is left out."""
        path = self.folder / "starts"
        lines = path.read_text().splitlines() if path.exists() else []
        return [(int(words[0]), words[1].strip('"')) for line in lines if len(words := line.split()) == 2]

    def _spawn(self, command: str, *words: str) -> subprocess.Popen[bytes]:
        with (self.folder / "log").open("ab") as log:
            return subprocess.Popen(
                [sys.executable, "-c", PROGRAM.format(command), *words],
                cwd=self.folder,
                env=self.env,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )


class Rounds:
    """Plays rounds and keeps the figures and the mistakes."""

    def __init__(self, base: Path, seed: int) -> None:
        self.base = base
        self.random = random.Random(seed)
        self.mistakes: list[str] = []
        self.figures = dict.fromkeys(
            ("rounds", "kills", "kills_before_the_run", "kills_in_the_run", "reused", "again"), 0
        )
        self.expected: dict[str, tuple[dict[str, Any], float, int]] = {}

    def play(self, number: int) -> None:
        language = ("spine", "dag", "family")[number % 3]
        if language not in self.expected:
            self.expected[language] = self._undisturbed(language)
        expected, seconds, commands = self.expected[language]
        play = Round(self.base / f"round-{number}", language)
        for _ in range(self.random.randint(1, 3)):
            if not self._kill_once(play, self.random.uniform(0, seconds), number):
                break
        before = self._finish(play, number)
        if play.result() != expected:
            self._wrong(number, f"ended as {play.result()} instead of {expected}")
        self.figures["reused"] += before
        self.figures["again"] += max(0, len(play.starts()) - commands)
        self.figures["rounds"] += 1
        shutil.rmtree(play.folder)

    def _undisturbed(self, language: str) -> tuple[dict[str, Any], float, int]:
        play = Round(self.base / language, language)
        begun = time.monotonic()
        if play.start().wait() != 0:
            raise SystemExit((play.folder / "log").read_text()[-2000:])
        return play.result(), time.monotonic() - begun, len(play.starts())

    def _kill_once(self, play: Round, delay: float, number: int) -> bool:
        """Start or resume, kill after a while, and check what is left; False when the run had ended."""
        state = play.state()
        if state is not None and state.status is not RunStatus.ACTIVE:
            return False
        done, counts = self._counts(play)
        driver = play.start() if state is None else play.resume()
        if self.random.random() < 0.8:
            _wait_for_a_command(play, driver, sum(counts.values()))
            delay /= 3
        time.sleep(delay)
        self._check_zombies(driver.pid, number)
        driver.send_signal(signal.SIGKILL)
        killed = driver.wait() == -signal.SIGKILL
        self.figures["kills"] += killed
        self._reap(number)
        self._check_done(play, done, counts, number)
        state = play.state()
        self.figures["kills_before_the_run" if state is None else "kills_in_the_run"] += killed
        return killed

    def _finish(self, play: Round, number: int) -> int:
        done, counts = self._counts(play)
        state = play.state()
        if state is None or state.status is RunStatus.ACTIVE:
            driver = play.start() if state is None else play.resume()
            if driver.wait() != 0:
                self._wrong(number, f"exit {driver.returncode}: {(play.folder / 'log').read_text()[-1500:]}")
        self._reap(number)
        self._check_done(play, done, counts, number)
        return len(done)

    def _counts(self, play: Round) -> tuple[list[str], dict[str, int]]:
        started = [name for _, name in play.starts()]
        return play.done(), {name: started.count(name) for name in started}

    def _check_done(self, play: Round, done: list[str], counts: dict[str, int], number: int) -> None:
        """A unit whose outcome was durable before is not started again."""
        started = [name for _, name in play.starts()]
        whole = [name for name in set(done) if done.count(name) >= ITEMS.count(name)]
        for name in whole:
            if started.count(name) != counts[name]:
                self._wrong(number, f"the completed unit {name} was started again")

    def _check_zombies(self, driver: int, number: int) -> None:
        """A zombie that is still one a while later was not reaped by the driver."""
        first = _zombies(driver)
        if first and (left := first & _zombies_after(driver, 0.3)):
            self._wrong(number, f"zombies of the driver: {sorted(left)}")

    def _reap(self, number: int) -> None:
        """Wait until every descendant is gone."""
        deadline = time.monotonic() + ENDED_WITHIN_S
        while True:
            try:
                pid, _ = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                if time.monotonic() > deadline:
                    left = subprocess.run(
                        ["ps", "--ppid", str(os.getpid()), "-o", "pid,stat,args"], capture_output=True, check=False
                    )
                    self._wrong(number, f"left over: {left.stdout.decode()}")
                    return
                time.sleep(0.005)

    def _wrong(self, number: int, text: str) -> None:
        self.mistakes.append(f"round {number}: {text}")


def _runs_a_command(step: Any) -> bool:
    """A step that composes another workflow runs none, and its artifact names a run."""
    return step.plan.unit is not None and isinstance(step.plan.unit.spec, ExecSpec)


def _wait_for_a_command(play: Round, driver: subprocess.Popen[bytes], before: int) -> None:
    """Until a driver has started one more command, so that the kill comes while it works."""
    while len(play.starts()) <= before and driver.poll() is None:
        time.sleep(0.002)


def _zombies_after(driver: int, seconds: float) -> set[int]:
    time.sleep(seconds)
    return _zombies(driver)


def _zombies(ancestor: int) -> set[int]:
    """Descendants of a process that have ended and that nobody has waited for."""
    parents: dict[int, tuple[int, str]] = {}
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            try:
                fields = Path("/proc", entry, "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            parents[int(entry)] = (int(fields[1]), fields[0])
    found = set()
    for pid, (parent, status) in parents.items():
        above = parent
        while above in parents and above != ancestor:
            above = parents[above][0]
        if above == ancestor and status == "Z":
            found.add(pid)
    return found


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    ctypes.CDLL(None).prctl(SUBREAPER, 1, 0, 0, 0)
    begun = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="rounds-") as folder:
        rounds = Rounds(Path(folder), options.seed)
        for number in range(options.rounds):
            rounds.play(number)
    figures = {**rounds.figures, "mistakes": len(rounds.mistakes), "seconds": round(time.monotonic() - begun, 1)}
    print(json.dumps(figures))
    for mistake in rounds.mistakes:
        print(mistake)
    return 1 if rounds.mistakes else 0


if __name__ == "__main__":
    sys.exit(main())
