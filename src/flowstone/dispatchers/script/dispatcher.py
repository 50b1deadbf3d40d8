"""Performs script units: hands the source and input to a worker process and makes its reply an outcome."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

from flowstone.dispatchers.script.worker import Worker, WorkerGone
from flowstone.errors import DispatchSetupError
from flowstone.expr.cel_values import stringify
from flowstone.expr.model import Literal
from flowstone.plan.units import ScriptSpec
from flowstone.ports.dispatcher import Dispatch
from flowstone.redaction import Redactor
from flowstone.run.outcome import Outcome, Reason, failed
from flowstone.values import MAX_DEPTH, Json, JsonError, decode_json

ARGUMENTS = ("source", "input")
IDLE_WORKERS = 4
"""Workers that are kept for the next script; a wide run uses more while it needs them."""


class BadScript(ValueError):
    """What cannot be run at all; the message says what to write instead."""


class ScriptDispatcher:
    """Runs sandboxed JavaScript. The result is `{"value": <the value of the last expression>}`.

    Bounds: the attempt's time by the wall clock (its worker is ended), memory and stack in the
    worker. A script that fails never ran, so that it satisfies no poll.
    """

    def __init__(self, environment: Mapping[str, str], redactor: Redactor) -> None:
        self._environment = environment
        self._redactor = redactor
        self._idle: list[Worker] = []
        self._busy: set[Worker] = set()
        self._closed = False

    async def perform(self, dispatch: Dispatch) -> Outcome:
        spec = dispatch.spec
        assert isinstance(spec, ScriptSpec)
        assert isinstance(spec.arguments, Literal)
        if self._closed:
            raise DispatchSetupError("the script dispatcher is closed")
        limit = None if dispatch.timeout_ms is None else dispatch.timeout_ms / 1000
        try:
            source, value = _arguments(spec.arguments.value)
            reply = await self._run(source, value, limit)
            return Outcome(value={"value": self._redactor.json(_value(reply))})
        except BadScript as error:
            return self._failed(Reason.SCRIPT_ERROR, str(error))
        except TimeoutError:
            return self._failed(Reason.TIMEOUT, f"interrupted: timed out after {_spelt(dispatch.timeout_ms or 0)}")
        except WorkerGone:
            return self._failed(Reason.SCRIPT_ERROR, "the worker process ended: the script used more than it may")

    async def close(self) -> None:
        """End every worker; closing twice does nothing."""
        self._closed = True
        idle, self._idle = self._idle, []
        for worker in [*self._busy]:
            await worker.kill()
        for worker in idle:
            await worker.close()

    async def _run(self, source: str, value: Json, limit: float | None) -> bytes:
        """The worker's reply. Only a worker that replied is used again; any other one is ended."""
        worker = None
        while self._idle and worker is None:
            worker = self._idle.pop()
            if not worker.alive:
                await worker.kill()
                worker = None
        worker = worker or await Worker.start(self._environment)
        self._busy.add(worker)
        sane = False
        try:
            async with asyncio.timeout(limit):
                reply = await worker.run(source, value, limit)
            sane = True
            return reply
        finally:
            self._busy.discard(worker)
            if sane and len(self._idle) < IDLE_WORKERS and not self._closed:
                self._idle.append(worker)
            else:
                await asyncio.shield(worker.kill())

    def _failed(self, reason: Reason, text: str) -> Outcome:
        return failed(reason, self._redactor.text(f"script: {text}"), ran=False)


def _arguments(arguments: Json) -> tuple[str, Json]:
    """The source and the input; BadScript when `with` is not as the action wants it."""
    if not isinstance(arguments, dict):
        raise BadScript("with must be a mapping")
    unknown = [name for name in arguments if name not in ARGUMENTS]
    if unknown:
        raise BadScript(f"unknown with.{unknown[0]} (it takes {', '.join(ARGUMENTS)})")
    source = arguments.get("source")
    if source is None or isinstance(source, (list, dict)) or not stringify(source).strip():
        raise BadScript("with.source is required: the text of a script")
    return stringify(source), arguments.get("input")


def _value(reply: bytes) -> Json:
    try:
        found = decode_json(reply, whole_floats=False, max_depth=MAX_DEPTH + 1)
    except JsonError as error:
        raise BadScript(f"value: it cannot be stored as JSON: {error}") from None
    if "error" in found:
        line = found.get("line")
        raise BadScript(f"{found['error']} (line {line})" if line else str(found["error"]))
    return found["value"]


def _spelt(milliseconds: int) -> str:
    from flowstone.expr.duration import format_go_duration

    return format_go_duration(milliseconds * 1_000_000)
