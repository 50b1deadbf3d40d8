"""How commands end: timeouts, cancellation, held pipes, a dead driver, a dead guard."""

from __future__ import annotations

import asyncio
import fcntl
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from flowstone.plan.units import CaptureRule, EnvironmentRule
from flowstone.run.outcome import Outcome, Reason
from tests.unit.dispatchers.process.conftest import STEP, Bench, gone, lives

AKM = {"environment": EnvironmentRule(context="AKM_")}
CONTEXT = (("AKM_RUN_ID", "run-1"), ("AKM_UNIT_ID", "a:solo"), ("AKM_PARAMS", "{}"))


class TestTimeout:
    def test_output_is_kept_and_the_reason_is_timeout(self, bench: Bench) -> None:
        outcome = bench.sh("echo partial; exec sleep 20", timeout_ms=300)
        assert outcome.reason is Reason.TIMEOUT
        assert 'exec unit "a:solo" ran "sh" (2 arguments) and it timed out after 300ms.' in (outcome.error or "")
        assert "partial" in (outcome.diagnostic or "")

    def test_a_step_has_its_own_wording(self, bench: Bench) -> None:
        outcome = bench.sh("echo partial; exec sleep 20", timeout_ms=300, capture=STEP)
        assert outcome.error == "run: timed out (killed): sh"
        assert (outcome.stdout, outcome.exit_code) == ("partial\n", -1)

    def test_the_whole_group_is_ended(self, bench: Bench) -> None:
        outcome = bench.sh("sleep 30 & echo $! $$ > pids; sleep 30", timeout_ms=300)
        assert outcome.reason is Reason.TIMEOUT
        assert gone(bench.pids(), within=0.5)

    @pytest.mark.usefixtures("short_ladder")
    def test_what_ignores_the_polite_signal_is_killed(self, bench: Bench) -> None:
        started = time.monotonic()
        script = "trap '' TERM; echo $$ > pids; while :; do sleep 0.1; done"
        assert bench.sh(script, timeout_ms=200).reason is Reason.TIMEOUT
        assert gone(bench.pids(), within=0.5)
        assert 0.5 <= time.monotonic() - started < 2.5

    @pytest.mark.usefixtures("short_ladder")
    def test_a_child_that_ignores_it_after_its_leader_obeyed(self, bench: Bench) -> None:
        script = "sh -c 'trap \"\" TERM; echo $$ > pids; while :; do sleep 0.1; done' >/dev/null 2>&1 & sleep 30"
        assert bench.sh(script, timeout_ms=300).reason is Reason.TIMEOUT
        assert gone(bench.pids(), within=0.5)

    @pytest.mark.usefixtures("short_ladder")
    def test_a_stopped_command_is_ended(self, bench: Bench) -> None:
        assert bench.sh("echo $$ > pids; kill -STOP $$; sleep 30", timeout_ms=300).reason is Reason.TIMEOUT
        assert gone(bench.pids(), within=0.5)

    def test_a_grandchild_in_a_session_of_its_own(self, bench: Bench) -> None:
        outcome = bench.sh("setsid sh -c 'echo $$ > pids; sleep 30' & sleep 30", timeout_ms=400)
        assert outcome.reason is Reason.TIMEOUT
        assert gone(bench.pids(), within=0.5)

    def test_one_whose_parent_is_gone_is_found_by_its_mark(self, bench: Bench) -> None:
        script = "(setsid sh -c 'echo $$ > pids; sleep 30' >/dev/null 2>&1 &); sleep 30"
        outcome = bench.sh(script, timeout_ms=400, spec=AKM, context=CONTEXT)
        assert outcome.reason is Reason.TIMEOUT
        assert gone(bench.pids(), within=0.5)

    def test_a_mark_of_another_unit_protects(self, bench: Bench) -> None:
        environment = {"AKM_RUN_ID": "run-1", "AKM_UNIT_ID": "b:solo", "PATH": os.environ["PATH"]}
        bystander = subprocess.Popen(["sleep", "30"], env=environment, start_new_session=True)
        try:
            bench.sh("sleep 30", timeout_ms=200, spec=AKM, context=CONTEXT)
            assert lives(bystander.pid)
        finally:
            bystander.kill()
            bystander.wait()

    def test_the_timeout_is_over_when_the_leader_has_exited(self, bench: Bench) -> None:
        capture = CaptureRule(grace_ms=600)
        outcome = bench.sh("(sleep 0.4; echo late) & echo first", timeout_ms=250, capture=capture)
        assert outcome.value == "first\nlate"


class TestHeldStreams:
    def test_stdout_held_past_the_grace_is_incomplete(self, bench: Bench) -> None:
        outcome = bench.sh("sleep 20 & echo part")
        assert outcome.reason is Reason.EXEC_CAPTURE_INCOMPLETE
        assert outcome.value is None
        assert outcome.exit_code == 0

    def test_stdout_closed_within_the_grace_is_whole(self, bench: Bench) -> None:
        assert bench.sh("(sleep 0.1; echo late) & echo first").value == "first\nlate"

    def test_stderr_held_is_a_warning_that_names_the_unit(self, bench: Bench) -> None:
        outcome = bench.sh("sleep 2 >/dev/null & echo whole")
        assert outcome.value == "whole"
        assert 'unit "a:solo": its stderr may be incomplete' in outcome.warnings[0]

    def test_a_step_keeps_what_came_and_ends_the_group(self, bench: Bench) -> None:
        outcome = bench.sh("sleep 20 & echo $! > pids; echo part", capture=STEP)
        assert outcome.ok
        assert outcome.stdout == "part\n"
        assert gone(bench.pids(), within=0.5)

    def test_a_failure_with_a_held_stream_is_told_by_its_exit_code(self, bench: Bench) -> None:
        assert bench.sh("sleep 20 & exit 7").exit_code == 7


class TestCancellation:
    def cancelled(self, bench: Bench, script: str, wait_for: str, cancels: int = 1) -> None:
        async def work(dispatcher) -> None:
            task = asyncio.ensure_future(dispatcher.perform(bench.dispatch("sh", "-c", script)))
            while not (bench.folder / wait_for).exists():
                await asyncio.sleep(0.01)
            for _ in range(cancels):
                task.cancel()
                await asyncio.sleep(0.05)
            with pytest.raises(asyncio.CancelledError):
                await task

        bench.using(work)

    def test_the_group_is_ended_before_it_is_raised(self, bench: Bench) -> None:
        self.cancelled(bench, "sleep 30 & echo $! $$ > pids.new; mv pids.new pids; sleep 30", "pids")
        assert gone(bench.pids(), within=0)

    @pytest.mark.usefixtures("short_ladder")
    def test_a_second_cancellation_does_not_cut_the_ladder_short(self, bench: Bench) -> None:
        script = "trap '' TERM; echo $$ > pids.new; mv pids.new pids; while :; do sleep 0.1; done"
        self.cancelled(bench, script, "pids", cancels=3)
        assert gone(bench.pids(), within=0)

    def test_before_anything_was_spawned(self, bench: Bench) -> None:
        async def work(dispatcher) -> None:
            task = asyncio.ensure_future(dispatcher.perform(bench.dispatch("sleep", "30")))
            await asyncio.sleep(0)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task

        started = time.monotonic()
        bench.using(work)
        assert time.monotonic() - started < 2

    def test_close_ends_what_still_runs(self, bench: Bench) -> None:
        async def work(dispatcher) -> Outcome:
            script = "echo $$ > pids.new; mv pids.new pids; exec sleep 30"
            task = asyncio.ensure_future(dispatcher.perform(bench.dispatch("sh", "-c", script)))
            while not (bench.folder / "pids").exists():
                await asyncio.sleep(0.01)
            await dispatcher.close()
            await dispatcher.close()
            return await task

        outcome = bench.using(work)
        assert outcome.reason is Reason.ABORTED
        assert gone(bench.pids(), within=0.2)


DRIVER = """
import asyncio, os, sys
from flowstone.dispatchers.process.dispatcher import ProcessDispatcher
from flowstone.plan.units import ExecSpec
from flowstone.ports.dispatcher import Dispatch, Workspace
from flowstone.redaction import Redactor

async def main(folder, lease, scripts):
    dispatcher = ProcessDispatcher(
        Workspace(folder, folder), os.environ, Redactor(), lambda ref: {}, lease_fd=lease)
    await asyncio.gather(*(
        dispatcher.perform(Dispatch("r", "s", f"u{i}", 1, i, "h", ExecSpec(("sh", "-c", script))))
        for i, script in enumerate(scripts)))

lock = open(sys.argv[1] + "/lock")
import fcntl; fcntl.flock(lock, fcntl.LOCK_EX)
asyncio.run(main(sys.argv[1], lock.fileno(), sys.argv[2:]))
"""


class TestDeadDriver:
    def start(self, bench: Bench, *scripts: str) -> subprocess.Popen[bytes]:
        (bench.folder / "lock").touch()
        source = str(Path(__file__).parents[4] / "src")
        driver = subprocess.Popen(
            [sys.executable, "-c", DRIVER, str(bench.folder), *scripts],
            env={**os.environ, "PYTHONPATH": source},
            start_new_session=True,
        )
        end = time.monotonic() + 20
        names = [f"p{n}" for n in range(len(scripts))]
        while not all((bench.folder / name).exists() for name in names) and time.monotonic() < end:
            time.sleep(0.01)
        return driver

    @pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
    def test_its_commands_end_and_the_lease_is_held_until_then(self, bench: Bench, number: int) -> None:
        write = "mv p.$$ p{n}; sleep 30"
        driver = self.start(
            bench,
            "sleep 30 & echo $! $$ > p.$$; " + write.format(n=0),
            "trap '' TERM HUP INT; echo $$ > p.$$; mv p.$$ p1; while :; do sleep 0.1; done",
            "setsid sh -c 'echo $$ > p.$$; mv p.$$ p2; sleep 30' & sleep 30",
        )
        pids = [pid for n in range(3) for pid in bench.pids(f"p{n}")]
        assert all(map(lives, pids))
        os.killpg(driver.pid, number)
        driver.wait()
        with open(bench.folder / "lock") as lock:
            with pytest.raises(BlockingIOError):
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            fcntl.flock(lock, fcntl.LOCK_EX)
        assert gone(pids, within=0)

    def test_the_guard_does_not_outlive_them(self, bench: Bench) -> None:
        driver = self.start(bench, "echo $PPID > p.$$; mv p.$$ p0; sleep 30")
        guard = bench.pids("p0")
        os.kill(driver.pid, signal.SIGKILL)
        driver.wait()
        assert gone(guard)


class TestDeadGuard:
    def test_the_attempt_fails_and_its_command_is_ended(self, bench: Bench) -> None:
        async def work(dispatcher) -> tuple[Outcome, Outcome]:
            script = "echo $$ > pids.new; mv pids.new pids; echo out; exec sleep 30"
            task = asyncio.ensure_future(dispatcher.perform(bench.dispatch("sh", "-c", script)))
            while not (bench.folder / "pids").exists():
                await asyncio.sleep(0.01)
            await asyncio.sleep(0.05)
            os.kill(dispatcher._guard.pid, signal.SIGKILL)
            return await task, await dispatcher.perform(bench.dispatch("echo", "again"))

        lost, again = bench.using(work)
        assert lost.reason is Reason.DISPATCH_ERROR
        assert "guard" in (lost.error or "")
        assert gone(bench.pids(), within=0.5)
        assert again.value == "again"

    def test_it_is_in_no_group_that_a_terminal_signals(self, bench: Bench) -> None:
        async def work(dispatcher) -> Outcome:
            await dispatcher.perform(bench.dispatch("true"))
            guard = dispatcher._guard.pid
            assert os.getpgid(guard) == guard != os.getpgid(0)
            return await dispatcher.perform(bench.dispatch("echo", "still here"))

        assert bench.using(work).value == "still here"

    def test_a_signal_that_a_command_sends_its_parent_reaches_the_driver(self, bench: Bench) -> None:
        heard: list[str] = []

        async def work(dispatcher) -> Outcome:
            loop = asyncio.get_running_loop()
            for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
                loop.add_signal_handler(number, heard.append, number.name[3:])
            for name in ("INT", "TERM", "HUP"):
                await dispatcher.perform(bench.dispatch("sh", "-c", f"kill -{name} $PPID; sleep 0.2"))
            return await dispatcher.perform(bench.dispatch("echo", "still here"))

        assert bench.using(work).value == "still here"
        assert heard == ["INT", "TERM", "HUP"]


class TestParricide:
    def test_a_command_that_kills_its_guard_at_once_fails_and_the_next_one_runs(self, bench: Bench) -> None:
        async def work(dispatcher) -> tuple[Outcome, Outcome]:
            first = await dispatcher.perform(bench.dispatch("sh", "-c", "kill -9 $PPID; sleep 1"))
            return first, await dispatcher.perform(bench.dispatch("echo", "still here"))

        first, second = bench.using(work)
        assert (first.reason, second.value) == ("dispatch_error", "still here")


class TestMany:
    def test_five_hundred_commands(self, bench: Bench) -> None:
        async def work(dispatcher) -> list[Outcome]:
            numbers = iter(range(500))
            outcomes: list[Outcome] = []

            async def worker() -> None:
                for number in numbers:
                    outcomes.append(await dispatcher.perform(bench.dispatch("echo", str(number))))

            await asyncio.gather(*(worker() for _ in range(16)))
            children = Path(f"/proc/{dispatcher._guard.pid}/task/{dispatcher._guard.pid}/children")
            await asyncio.sleep(0.05)
            assert children.read_text() == ""
            return outcomes

        outcomes = bench.using(work)
        assert sorted(int(outcome.value) for outcome in outcomes) == list(range(500))

    def test_a_hundred_at_once_with_large_environments(self, bench: Bench) -> None:
        context = (("AKM_RUN_ID", "r"), ("AKM_INPUTS", "y" * 90_000))

        async def work(dispatcher) -> list[Outcome]:
            dispatches = [
                bench.dispatch("sh", "-c", "echo ${#AKM_INPUTS}", spec=AKM, context=context) for _ in range(100)
            ]
            return await asyncio.gather(*map(dispatcher.perform, dispatches))

        assert {outcome.value for outcome in bench.using(work)} == {"90000"}
