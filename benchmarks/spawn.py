"""Compares runs of `true` through the process dispatcher with `xargs -P`, at several widths.

Prints wall-clock times, their ratio (medians of the rounds) and the driver's own CPU per command.
"""

from __future__ import annotations

import asyncio
import os
import statistics
import subprocess
import sys
import time

from flowstone.dispatchers.process.dispatcher import ProcessDispatcher
from flowstone.plan.units import ExecSpec
from flowstone.ports.dispatcher import Dispatch, Workspace
from flowstone.redaction import Redactor

WORK = ((1, 200), (4, 1_000), (16, 1_000))
ROUNDS = 5


def main() -> None:
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else ROUNDS
    for width, commands in WORK:
        xargs, ours, cpu = [], [], []
        for _ in range(rounds):
            xargs.append(with_xargs(width, commands))
            wall, used = asyncio.run(with_dispatcher(width, commands))
            ours.append(wall)
            cpu.append(used)
        base, mine = statistics.median(xargs), statistics.median(ours)
        print(
            f"width {width:2}: xargs {base:.3f} s, flowstone {mine:.3f} s, ratio {mine / base:.2f}, "
            f"driver CPU {statistics.median(cpu) / commands * 1e6:.0f} µs a command"
        )


def with_xargs(width: int, commands: int) -> float:
    numbers = "\n".join(map(str, range(commands)))
    started = time.perf_counter()
    command = ["xargs", f"-P{width}", "-n1", "true"]
    subprocess.run(command, input=numbers, text=True, check=True)
    return time.perf_counter() - started


async def with_dispatcher(width: int, commands: int) -> tuple[float, float]:
    folder = os.getcwd()
    workspace = Workspace(base=folder, cwd=folder)
    dispatcher = ProcessDispatcher(workspace, os.environ, Redactor(), lambda ref: {})
    numbers = iter(range(commands))

    async def worker() -> None:
        for number in numbers:
            outcome = await dispatcher.perform(a_dispatch(number))
            assert outcome.ok, outcome

    dispatcher.start()
    started, cpu = time.perf_counter(), time.process_time()
    await asyncio.gather(*(worker() for _ in range(width)))
    used, wall = time.process_time() - cpu, time.perf_counter() - started
    await dispatcher.close()
    return wall, used


def a_dispatch(number: int) -> Dispatch:
    context = (("AKM_RUN_ID", "r"), ("AKM_UNIT_ID", f"m:{number}"))
    spec = ExecSpec(argv=("true",))
    return Dispatch("r", "m", f"m:{number}", 1, number, "h", spec, timeout_ms=600_000, context=context)


if __name__ == "__main__":
    main()
