"""Performs llm units and judges: one question to a chat-completions endpoint, and its outcome."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

import msgspec

from flowstone.dispatchers.answers.conversation import Conversation, Messages, Reply
from flowstone.dispatchers.llm.answer import failure, may_pass, reply_of
from flowstone.dispatchers.llm.client import ModelClient, Received, Unreachable, UnreadableBody
from flowstone.dispatchers.llm.credentials import MissingKey, key_of
from flowstone.dispatchers.llm.request import body_of, wants_format
from flowstone.plan.units import LlmSpec
from flowstone.ports.dispatcher import Dispatch
from flowstone.redaction import Redactor
from flowstone.run.outcome import Outcome, Reason, failed

PAUSE_SECONDS = (0.2, 0.8)
"""A repetition after a server's failure waits for a time between these."""
PATIENCE = 0.9
"""The part of a unit's time after which nothing is repeated by itself."""


class LlmDispatcher:
    """Talks to the models of one run. `env` is where the engines' keys are looked up, at each attempt."""

    def __init__(self, env: Mapping[str, str], redactor: Redactor) -> None:
        self._env = env
        self._redactor = redactor
        self._client = ModelClient()
        self._unformatted: set[tuple[str, str]] = set()
        """Endpoints and models that were found to take no response format."""

    async def perform(self, dispatch: Dispatch) -> Outcome:
        spec = dispatch.spec
        assert isinstance(spec, LlmSpec)
        try:
            key = key_of(spec.credential, self._env)
        except MissingKey as problem:
            text = self._redactor.text(f'engine "{spec.engine}": {problem}')
            return failed(Reason.DISPATCH_ERROR, text, ran=False)
        redactor = self._redactor if key is None else self._redactor.extended((key,))
        call = _Call(dispatch, spec, _headers(key), redactor, _deadline(dispatch.timeout_ms))

        async def ask(messages: Messages) -> Reply | Outcome:
            return await self._ask(call, messages)

        conversation = Conversation(dispatch, ask, redactor)
        limit = None if dispatch.timeout_ms is None else dispatch.timeout_ms / 1000
        try:
            async with asyncio.timeout(limit):
                return await conversation.held()
        except TimeoutError:
            error = f'engine "{spec.engine}": timed out after {dispatch.timeout_ms} ms'
            return conversation.ended(failure(Reason.TIMEOUT, error))

    async def close(self) -> None:
        await self._client.close()

    async def _ask(self, call: _Call, messages: Messages) -> Reply | Outcome:
        try:
            found = reply_of(await self._answered(call, messages), call.redactor)
        except Unreachable as problem:
            found = failure(Reason.SPAWN_FAILED, call.redactor.text(f"the server cannot be reached: {problem}"))
        except UnreadableBody as problem:
            found = failure(Reason.LLM_INVALID_JSON, f"the server's answer cannot be read: {problem}")
        if isinstance(found, Reply):
            return found
        error = f'engine "{call.spec.engine}": {found.error}'
        return msgspec.structs.replace(found, error=error, diagnostic=error)

    async def _answered(self, call: _Call, messages: Messages) -> Received:
        """The server's answer; where it takes no response format, that to the request without one."""
        spec = call.spec
        place = (spec.endpoint, spec.model)
        formatted = wants_format(call.dispatch, spec) and place not in self._unformatted
        received = await self._sent(call, body_of(spec, messages, call.dispatch.schema, formatted=formatted))
        if not formatted or not 400 <= received.status < 500 or received.status == 429:
            return received
        received = await self._sent(call, body_of(spec, messages, None, formatted=False))
        if received.status < 300:
            self._unformatted.add(place)
        return received

    async def _sent(self, call: _Call, body: bytes) -> Received:
        """Send, and once more where the server failed or broke off and there is time left."""
        try:
            received = await self._client.post(call.spec.endpoint, call.headers, body)
            if not may_pass(received) or not call.has_time():
                return received
        except Unreachable as error:
            if not error.dropped or not call.has_time():
                raise
        await asyncio.sleep(_pause())
        return await self._client.post(call.spec.endpoint, call.headers, body)


class _Call(msgspec.Struct, frozen=True):
    """What the requests of one attempt share; `last_start` is the loop's time after which none is repeated."""

    dispatch: Dispatch
    spec: LlmSpec
    headers: dict[str, str]
    redactor: Redactor
    last_start: float | None

    def has_time(self) -> bool:
        return self.last_start is None or asyncio.get_running_loop().time() < self.last_start


def _deadline(timeout_ms: int | None) -> float | None:
    if timeout_ms is None:
        return None
    return asyncio.get_running_loop().time() + PATIENCE * timeout_ms / 1000


def _headers(key: str | None) -> dict[str, str]:
    headers = {"content-type": "application/json", "accept": "application/json"}
    return headers if key is None else {**headers, "authorization": f"Bearer {key}"}


def _pause() -> float:
    import random

    return random.uniform(*PAUSE_SECONDS)
