"""One driver of a shared run as a process: `python -m tests.crash.one_driver STORE PATH LOG`.

Prints one word: what became of it. Each unit that it performs leaves a line in the log.
"""

from __future__ import annotations

import asyncio
import os
import sys

from flowstone.drivers.clock import SystemClock
from flowstone.drivers.drive import DriveOptions, drive_run
from flowstone.errors import LeaseHeld
from flowstone.plan.codec import decode_plan, encode_plan, plan_hash
from flowstone.plan.model import Plan
from flowstone.ports.dispatcher import Dispatch
from flowstone.run.outcome import Outcome
from flowstone.run.record import RunRecord, RunSummary
from flowstone.stores.registry import open_store
from flowstone.testing.plans import fan_out, solo, spine
from tests.driving import RUN

PARAMS = {"l": list(range(12))}


def shared_plan() -> Plan:
    return spine(solo("a"), fan_out("m", "params.l", width=3), solo("z"))


def create(name: str, path: str) -> None:
    """The run that the drivers share."""
    text = encode_plan(shared_plan())
    store = open_store(name, path)
    store.create(RunRecord(RUN, "spine", "ref", "Flow", "/", "/", text, plan_hash(text), 1), RunSummary())
    store.close()


class _Logging:
    """A workshop and dispatcher in one: each unit takes a moment and is written down."""

    params = PARAMS

    def __init__(self, log: str) -> None:
        self.connections: dict[str, str] = {}
        self._log = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT)

    def open(self, lease: object, observer: object):
        return lambda spec: self

    def redact(self, value: object) -> object:
        return value

    async def perform(self, dispatch: Dispatch) -> Outcome:
        await asyncio.sleep(0.01)
        os.write(self._log, f"{dispatch.unit} {os.getpid()}\n".encode())
        return Outcome(value=dispatch.index)

    async def close(self) -> None:
        return None


class _Silent:
    def recorded(self, state: object, events: object) -> None:
        pass

    def line(self, step: str, unit: str, text: str) -> None:
        pass

    def warned(self, text: str) -> None:
        pass


def main(name: str, path: str, log: str) -> str:
    store = open_store(name, path)
    workshop = _Logging(log)
    sys.stdin.readline()
    try:
        report = drive_run(
            store,
            RUN,
            lambda row: decode_plan(row.record.plan),
            lambda row, state: workshop,
            DriveOptions(),
            SystemClock(),
            _Silent(),
        )
    except LeaseHeld as error:
        return "held" if error.holder.startswith("pid ") else f"held by {error.holder}"
    return f"{report.state.status} {len(report.executed)}"


if __name__ == "__main__":
    print(main(*sys.argv[1:]), flush=True)
