"""A gate loop that is killed at any append, with real stores and a real model server that counts.

The resumed run ends in the same verdicts, and no artifact whose verdict is on record is judged again.
"""

from __future__ import annotations

import itertools
import json
from collections import Counter
from typing import Any

import pytest

from flowstone.dispatchers.llm.dispatcher import LlmDispatcher
from flowstone.drivers.clock import SystemClock
from flowstone.drivers.drive import DriveOptions, drive_run
from flowstone.plan.codec import decode_plan, encode_plan, plan_hash
from flowstone.plan.model import Gate, Plan, Unit
from flowstone.plan.units import LlmSpec
from flowstone.redaction import Redactor
from flowstone.run.events import AttemptEnded, RunStatus, StepClosed, StepRejected
from flowstone.run.fold import replay
from flowstone.run.record import RunRecord, RunSummary
from flowstone.stores.registry import open_store
from flowstone.testing.crashing_store import Crash, CrashingStore, When
from flowstone.testing.model_server import Answer, Asked, ModelServer
from flowstone.testing.plans import fan_out, solo, spine
from tests.crashing import NEVER
from tests.driving import RUN

PARAMS = {"l": ["p", "q", "r"]}


def answered(asked: Asked) -> Answer:
    """A first draft is rejected, an answer to feedback is accepted."""
    if asked.body["messages"][0]["role"] == "system":
        draft = "draft one" in asked.prompt
        verdict = {"complete": not draft, "missing": ["a second draft"] if draft else [], "feedback": "Once more."}
        return Answer(json.dumps(verdict))
    return Answer("draft two" if "rejected" in asked.prompt else "draft one")


def looping(endpoint: str) -> Plan:
    worker = Unit(LlmSpec("Write.", "e", endpoint, "m", concurrency=4))
    judge = LlmSpec("", "judge", endpoint, "m", concurrency=1, judges=True)
    gate = Gate("RUBRIC holds.", 3, judge=judge, system="Be strict.")
    each = fan_out("m", "params.l", unit=worker, gate=gate, width=2)
    return spine(solo("a", unit=worker, gate=gate), each, solo("z", unit=worker))


class Models:
    """A workshop whose only dispatcher asks a model server."""

    params = PARAMS

    def __init__(self) -> None:
        self.connections: dict[str, Any] = {}

    def open(self, lease: object, observer: object) -> Any:
        self._dispatcher = LlmDispatcher({}, Redactor())
        return lambda spec: self._dispatcher

    def redact(self, value: Any) -> Any:
        return value

    async def close(self) -> None:
        await self._dispatcher.close()


class Silent:
    def recorded(self, state: object, events: object) -> None: ...
    def line(self, step: str, unit: str, text: str) -> None: ...
    def warned(self, text: str) -> None: ...


class Run:
    """One run in one store; `drive` is one process's part of it."""

    def __init__(self, store: Any, server: ModelServer) -> None:
        self.store = store
        self.server = server
        self.plan = looping(server.endpoint)
        text = encode_plan(self.plan)
        record = RunRecord(RUN, "spine", "ref", "Flow", "/", "/", text, plan_hash(text), 1)
        store.create(record, RunSummary())

    def drive(self, store: Any = None) -> None:
        drive_run(
            store or self.store,
            RUN,
            lambda row: decode_plan(row.record.plan),
            lambda row, state: Models(),
            DriveOptions(),
            SystemClock(),
            Silent(),
        )

    @property
    def events(self) -> list[Any]:
        return [entry.event for entry in self.store.read(RUN)]

    @property
    def active(self) -> bool:
        return replay(RUN, self.plan, self.store.read(RUN)).status is RunStatus.ACTIVE

    def verdicts(self) -> list[Any]:
        """Every rejection with its words, and how each step ended, in order."""
        shown: list[Any] = []
        for event in self.events:
            if isinstance(event, StepRejected):
                shown.append((event.step, event.loop, event.feedback, event.missing))
            if isinstance(event, StepClosed):
                shown.append((event.step, event.status, event.artifact))
        return shown

    def judged(self) -> set[tuple[str, str]]:
        """The judge's units whose verdict is on record."""
        ended = [event for event in self.events if isinstance(event, AttemptEnded) and event.index < 0]
        return {(event.step, event.unit) for event in ended if event.outcome.ok}

    def questions(self) -> Counter[str]:
        """How often each artifact was put to the judge."""
        asked = (call for call in self.server.asked if call.body["messages"][0]["role"] == "system")
        return Counter(call.prompt for call in asked)


@pytest.mark.parametrize("name", ["sqlite", "directory"])
def test_a_gate_loop_that_is_killed_at_any_append(tmp_path, name):
    stores = []

    def opened() -> Any:
        stores.append(open_store(name, str(tmp_path / str(len(stores)))))
        return stores[-1]

    with ModelServer(answered) as server:
        whole = Run(opened(), server)
        counting = CrashingStore(whole.store, NEVER, When.BEFORE)
        whole.drive(counting)
        expected = whole.verdicts()
        assert [entry[:2] for entry in expected] == [
            ("a", 1),
            ("a", "succeeded"),
            ("m", 1),
            ("m", "succeeded"),
            ("z", "succeeded"),
        ]
        assert set(whole.questions().values()) == {1}
        tried = itertools.product(range(1, counting.appends + 1), When)
        killed = sum(_killed(Run(opened(), server), nth, when, expected) for nth, when in tried)
        assert killed >= 20
    for store in stores:
        store.close()


def _killed(run: Run, nth: int, when: When, expected: list[Any]) -> bool:
    """Kill and resume; False where the run took fewer appends, because more had ended at one time."""
    run.server.asked.clear()
    try:
        run.drive(CrashingStore(run.store, nth, when))
        return False
    except Crash:
        pass
    recorded, before = run.judged(), run.questions()
    if run.active:
        run.drive()
    assert run.verdicts() == expected, f"killed {when} append {nth}"
    again = [question for question, count in run.questions().items() if count > 1]
    assert len(again) <= len(before) - len(recorded), f"killed {when} append {nth}: judged again"
    assert sum(run.questions().values()) <= 4 + len(before) - len(recorded)
    return True
