"""An agent that is stopped in a worktree: what it left there is kept and named."""

from __future__ import annotations

import asyncio
import subprocess
from pathlib import Path

from flowstone.dispatchers.agent.dispatcher import AgentDispatcher
from flowstone.dispatchers.process.dispatcher import ProcessDispatcher
from flowstone.plan.units import AgentSpec
from flowstone.ports.dispatcher import Dispatch, Workspace
from flowstone.redaction import Redactor
from flowstone.run.outcome import Outcome, Reason
from tests.contract.harnesses.program import PASSED, Bench

IDENTITY = ("-c", "user.name=n", "-c", "user.email=e@example.invalid")


def test_the_worktree_of_a_stopped_agent_is_named(bench: Bench) -> None:
    (bench.folder / "tmp").mkdir()
    bench.env |= {"TMPDIR": str(bench.folder / "tmp"), "GIT_CONFIG_NOSYSTEM": "1"}
    for words in (("init", "-q", "."), ("commit", "-q", "--allow-empty", "-m", "c")):
        subprocess.run(["git", "-C", str(bench.work), *IDENTITY, *words], check=True, capture_output=True)
    outcome = asyncio.run(_stopped(bench, bench.program("touch begun; sleep 30\n")))
    kept = bench.folder / "tmp/akm-worktrees/r/a-solo"
    assert outcome.reason is Reason.ABORTED
    assert (kept / "begun").exists()
    assert str(kept) in outcome.warnings[0]
    assert "is kept" in outcome.warnings[0]


async def _stopped(bench: Bench, program: str) -> Outcome:
    """The outcome of an attempt that is ended as soon as its agent has changed something."""
    workspace = Workspace(base=str(bench.work), cwd=str(bench.work))
    commands = ProcessDispatcher(workspace, bench.env, Redactor(()), bench.assets.__getitem__)
    agents = AgentDispatcher(commands, bench.env)
    spec = AgentSpec("Do a.", "ag", "opencode", program, passed=PASSED)
    dispatch = Dispatch("r", "a", "a:solo", 0, 0, "h", spec, isolation="worktree", messages=(("user", "Do a."),))
    task = asyncio.get_running_loop().create_task(agents.perform(dispatch))
    place: Path = bench.folder / "tmp/akm-worktrees/r/a-solo/begun"
    while not place.exists():
        await asyncio.sleep(0.01)
    task.cancel()
    try:
        return await task
    finally:
        await commands.close()


def test_what_an_agent_has_started_ends_with_it_wherever_it_hides(bench: Bench) -> None:
    """A process in a session of its own is known by the marks of its unit."""
    hiding = f"setsid sh -c 'echo $$ > {bench.notes}/hidden; sleep 60' &\nsleep 60\n"
    outcome = bench.perform("claude", bench.program(hiding), timeout_ms=2_500, context="FLOW_")
    assert outcome.reason is Reason.TIMEOUT
    assert {name: bench.environment[name] for name in ("FLOW_RUN_ID", "FLOW_STEP_ID", "FLOW_UNIT_ID")} == {
        "FLOW_RUN_ID": "r",
        "FLOW_STEP_ID": "a",
        "FLOW_UNIT_ID": "a:solo",
    }
    assert not _runs(int(bench.note("hidden")))


def _runs(pid: int) -> bool:
    """Whether a process is more than an entry that nobody has collected."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except FileNotFoundError:
        return False
    return stat.rpartition(") ")[2][0] not in "ZX"
