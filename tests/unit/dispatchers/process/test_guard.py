"""The guard where the system offers less: no /proc, no way to leave a dead leader unreaped."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from pathlib import Path

import pytest

from flowstone.dispatchers.process import guard, guard_client
from flowstone.errors import DispatchSetupError
from flowstone.run.outcome import Reason
from tests.unit.dispatchers.process.conftest import Bench, gone


@pytest.fixture(params=["_HOLDS_DEAD = True", "_HOLDS_DEAD = False"])
def poor_system(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script = tmp_path / "poor_guard.py"
    source = Path(guard.__file__).read_text().partition('if __name__ == "__main__":')
    script.write_text(f"{source[0]}_HAS_PROC = False\n{request.param}\n{source[1]}{source[2]}")
    monkeypatch.setattr(guard_client, "_SCRIPT", str(script))


@pytest.mark.usefixtures("poor_system", "short_ladder")
class TestPoorSystem:
    def test_commands_run(self, bench: Bench) -> None:
        assert bench.sh("echo fine; exit 0").value == "fine"
        assert bench.sh("exit 7").exit_code == 7
        assert "SIGKILL" in (bench.sh("kill -9 $$").error or "")

    def test_a_group_is_ended_at_the_timeout(self, bench: Bench) -> None:
        outcome = bench.sh("sleep 30 & echo $! $$ > pids; sleep 30", timeout_ms=200)
        assert outcome.reason is Reason.TIMEOUT
        assert gone(bench.pids(), within=0.5)

    def test_a_stubborn_child_of_an_obedient_leader_is_killed(self, bench: Bench) -> None:
        script = "sh -c 'trap \"\" TERM; echo $$ > pids; while :; do sleep 0.1; done' & sleep 30"
        assert bench.sh(script, timeout_ms=300).reason is Reason.TIMEOUT
        assert gone(bench.pids(), within=0.5)

    def test_a_held_stdout_is_still_told(self, bench: Bench) -> None:
        outcome = bench.sh("sleep 30 & echo $! > pids; echo part")
        assert outcome.reason is Reason.EXEC_CAPTURE_INCOMPLETE
        assert gone(bench.pids(), within=0.5)


def test_a_guard_that_cannot_work_is_no_units_failure(
    bench: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "broken.py").write_text("raise SystemExit(1)")
    monkeypatch.setattr(guard_client, "_SCRIPT", str(tmp_path / "broken.py"))
    with pytest.raises(DispatchSetupError, match="guard process ended"):
        bench.perform("true")


def test_a_guard_that_hangs_does_not_hang_its_driver(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(guard_client, "_CLOSE_S", 0.2)

    async def work(dispatcher) -> None:
        await dispatcher.perform(bench.dispatch("true"))
        os.kill(dispatcher._guard.pid, signal.SIGSTOP)

    started = time.monotonic()
    bench.using(work)
    assert time.monotonic() - started < 3


def test_nothing_is_performed_after_close(bench: Bench) -> None:
    async def main() -> None:
        dispatcher = bench.dispatcher()
        await dispatcher.close()
        await dispatcher.close()
        with pytest.raises(DispatchSetupError):
            await dispatcher.perform(bench.dispatch("true"))

    asyncio.run(main())
