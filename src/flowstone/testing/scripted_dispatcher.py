"""A dispatcher that performs nothing: outcomes come from a script, and what it was asked is kept.

`Script` says what each attempt gives, by step, unit (index or item) and attempt number; delays pass
on the running loop's clock, so that a `LeapingLoop` makes them free.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from flowstone.ports.dispatcher import Dispatch
from flowstone.run.outcome import Outcome
from flowstone.values import Json, canonical_json, decode_json

Answer = Outcome | Callable[[Dispatch], Outcome]


class Scripted(msgspec.Struct, frozen=True):
    answer: Answer
    delay_ms: int = 0


class Script:
    """What attempts give. The most exact entry counts: unit and attempt, unit, attempt, step, else success.

    An attempt that no entry names succeeds with the text `<step>`, or `<step>:<canonical item>`.
    """

    def __init__(self) -> None:
        self._entries: dict[tuple[str, Json, int | None], Scripted] = {}

    def on(
        self,
        step: str,
        answer: Answer,
        *,
        unit: Json = None,
        attempt: int | None = None,
        delay_ms: int = 0,
    ) -> Script:
        """Script an answer. `unit` is an index (a number) or the item's text; None is any unit."""
        self._entries[(step, unit, attempt)] = Scripted(answer, delay_ms)
        return self

    def series(self, step: str, answers: Sequence[Answer], *, unit: Json = None, delay_ms: int = 0) -> Script:
        """Script the attempts from number 0 on; the last answer holds for all later ones."""
        for number, answer in enumerate(answers):
            self.on(step, answer, unit=unit, attempt=number, delay_ms=delay_ms)
        return self.on(step, answers[-1], unit=unit, delay_ms=delay_ms)

    def of(self, dispatch: Dispatch) -> Scripted:
        item = item_of(dispatch)
        units = [dispatch.index, item, None] if isinstance(item, str) else [dispatch.index, None]
        for attempt in (dispatch.number, None):
            for unit in units:
                found = self._entries.get((dispatch.step, unit, attempt))
                if found is not None and (attempt is not None or unit is not None):
                    return found
        return self._entries.get((dispatch.step, None, None)) or Scripted(_success(dispatch))


class ScriptedDispatcher:
    """Implements `ports.dispatcher.Dispatcher`.

    `asked` are the dispatches in order, `ended` those that came to an outcome, `cancelled` those
    that were stopped; `most_running` is how many ran at one time, by step and (under "") in all.
    """

    def __init__(self, script: Script | None = None) -> None:
        self.script = script or Script()
        self.asked: list[Dispatch] = []
        self.ended: list[tuple[Dispatch, Outcome]] = []
        self.cancelled: list[Dispatch] = []
        self.most_running: Counter[str] = Counter()
        self.closed = 0
        self._running: Counter[str] = Counter()

    async def perform(self, dispatch: Dispatch) -> Outcome:
        self.asked.append(dispatch)
        self._count(dispatch, 1)
        try:
            scripted = self.script.of(dispatch)
            if scripted.delay_ms:
                await asyncio.sleep(scripted.delay_ms / 1000)
            outcome = scripted.answer if isinstance(scripted.answer, Outcome) else scripted.answer(dispatch)
        except asyncio.CancelledError:
            self.cancelled.append(dispatch)
            raise
        finally:
            self._count(dispatch, -1)
        self.ended.append((dispatch, outcome))
        return outcome

    async def close(self) -> None:
        self.closed += 1

    def calls(self, step: str) -> list[tuple[int, int]]:
        """The (index, attempt number) pairs that a step was asked for, in order."""
        return [(d.index, d.number) for d in self.asked if d.step == step]

    def steps(self) -> list[str]:
        """The step of each dispatch, in order."""
        return [dispatch.step for dispatch in self.asked]

    def _count(self, dispatch: Dispatch, change: int) -> None:
        for key in (dispatch.step, ""):
            self._running[key] += change
            self.most_running[key] = max(self.most_running[key], self._running[key])


def item_of(dispatch: Dispatch) -> Any:
    """The item of a fan-out unit, read from its context variables; None without one."""
    text = next((value for name, value in dispatch.context if name.endswith("_ITEM")), None)
    return None if text is None else decode_json(text)


def _success(dispatch: Dispatch) -> Outcome:
    fans_out = any(name.endswith("_ITEM") for name, _ in dispatch.context)
    return Outcome(value=f"{dispatch.step}:{canonical_json(item_of(dispatch))}" if fans_out else dispatch.step)
