"""Runs real commands through a real dispatcher, one event loop and guard a test."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from flowstone.dispatchers.process import attempt
from flowstone.dispatchers.process.dispatcher import ProcessDispatcher
from flowstone.plan.units import CaptureRule, Drain, ExecSpec, Overflow
from flowstone.ports.dispatcher import Dispatch, Workspace
from flowstone.redaction import Redactor
from flowstone.run.outcome import Outcome

QUICK = CaptureRule(grace_ms=300)
STEP = CaptureRule(
    limit=4 << 20,
    overflow=Overflow.DROP,
    drain=Drain.KEEP,
    grace_ms=300,
    strip_newlines=False,
    keep_streams=True,
)


class Bench:
    """Builds dispatchers in a folder of its own and performs commands with them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.host = {"PATH": os.environ["PATH"], "HOME": str(folder)}
        self.lines: list[tuple[str, str, str]] = []
        self.workspace = Workspace(base=str(folder), cwd=str(folder))

    def dispatcher(self, secrets: tuple[str, ...] = (), **options: Any) -> ProcessDispatcher:
        env_values = options.pop("env_values", lambda ref: {})
        return ProcessDispatcher(self.workspace, self.host, Redactor(secrets), env_values, **options)

    def dispatch(self, *argv: str, capture: CaptureRule = QUICK, **fields: Any) -> Dispatch:
        spec = ExecSpec(argv=argv, capture=capture, **fields.pop("spec", {}))
        fields.setdefault("unit", "a:solo")
        return Dispatch(run="run-1", step="a", number=1, index=0, hash="h", spec=spec, **fields)

    def perform(self, *argv: str, secrets: tuple[str, ...] = (), live: bool = False, **fields: Any) -> Outcome:
        on_lines = self._heard if live else None
        env_values = fields.pop("env_values", lambda ref: {})

        async def one(dispatcher: ProcessDispatcher) -> Outcome:
            return await dispatcher.perform(self.dispatch(*argv, **fields))

        return self.using(one, secrets=secrets, on_lines=on_lines, env_values=env_values)

    def _heard(self, step: str, unit: str, lines: Sequence[str]) -> None:
        self.lines += [(step, unit, line) for line in lines]

    def sh(self, script: str, **fields: Any) -> Outcome:
        return self.perform("sh", "-c", script, **fields)

    def using(self, work: Callable[[ProcessDispatcher], Any], **options: Any) -> Any:
        async def main() -> Any:
            dispatcher = self.dispatcher(**options)
            try:
                return await work(dispatcher)
            finally:
                await dispatcher.close()

        return asyncio.run(main())

    def pids(self, name: str = "pids") -> list[int]:
        return [int(word) for word in (self.folder / name).read_text().split()]


def lives(pid: int) -> bool:
    """Whether a process runs; one that waits to be reaped does not."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2][0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state not in "ZX"


def gone(pids: list[int], within: float = 3.0) -> bool:
    end = time.monotonic() + within
    while any(map(lives, pids)) and time.monotonic() < end:
        time.sleep(0.02)
    return bool(pids) and not any(map(lives, pids))


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path.resolve())


@pytest.fixture
def short_ladder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(attempt, "LADDER_S", 0.3)
