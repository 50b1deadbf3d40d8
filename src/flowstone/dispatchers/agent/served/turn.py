"""One turn of a served agent: a message to its session, watched until the answer, and what that says.

Nobody is there to answer a question or to grant a permission, so both are refused; a model that the
server asks again and again without end is given up after a few times.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping
from typing import Any

import msgspec

from flowstone.dispatchers.agent.printed import at, count, text_at
from flowstone.dispatchers.agent.served.server import Server, ServerFailure
from flowstone.run.outcome import Reason
from flowstone.values import Json

WATCH_S = 1.0
"""Seconds between two looks at a session that has not answered yet."""
REPETITIONS = 3
"""How often the server may have asked its model again before the turn is given up."""
ABORT_S = 10.0
"""Seconds that an aborted turn may take to end."""
RULES = [{"permission": "question", "pattern": "*", "action": "deny"}]
_RATE = re.compile(r"rate.?limit|too many requests|429|overloaded", re.I)


class GivenUp(Exception):
    """The turn has no answer, for a reason that a unit can have."""

    def __init__(self, reason: Reason, message: str) -> None:
        super().__init__(message)
        self.reason = reason


class Turn(msgspec.Struct, frozen=True):
    """What an agent answered; tokens are those of this turn."""

    text: str
    tokens: int | None = None
    tokens_in: int | None = None
    tokens_out: int | None = None


class Session:
    """A conversation with a served agent in one folder, with one agent, model and system text."""

    def __init__(self, server: Server, folder: str, fields: Mapping[str, Any]) -> None:
        """`fields` are those of each message beside its text."""
        self._server = server
        self._folder = folder
        self._fields = fields
        self.id: str | None = None
        self._used: tuple[int, int] = (0, 0)

    async def turn(self, title: str, prompt: str) -> Turn:
        """Say something and wait for the answer; GivenUp, and ServerFailure where the server fails.

        A cancellation ends the turn at the server before it is raised.
        """
        if self.id is None:
            opened = await self._call("POST", "/session", {"title": title, "permission": RULES})
            self.id = text_at(opened, "id")
            if self.id is None:
                raise ServerFailure("it opened no session")
        body = {**self._fields, "parts": [{"type": "text", "text": prompt}]}
        answer = asyncio.ensure_future(self._call("POST", f"/session/{self.id}/message", body))
        try:
            return await self._read(await self._awaited(answer))
        finally:
            if not answer.done():
                await self._abort(answer)

    async def _awaited(self, answer: asyncio.Future[Json]) -> Json:
        while not answer.done():
            await asyncio.wait({answer}, timeout=WATCH_S)
            if not answer.done():
                await self._look()
        return answer.result()

    async def _look(self) -> None:
        """GivenUp when the agent waits for a permission, or its model cannot be had."""
        status = at(await self._asked("/session/status"), self.id or "")
        tried = at(status, "attempt")
        if text_at(status, "type") == "retry" and isinstance(tried, int) and tried > REPETITIONS:
            message = text_at(status, "message") or "no answer"
            reason = Reason.LLM_RATE_LIMIT if _RATE.search(message) else Reason.SPAWN_FAILED
            raise GivenUp(reason, f"its model failed {tried} times: {message}")
        waiting = await self._asked("/permission")
        for asked in waiting if isinstance(waiting, list) else []:
            if text_at(asked, "sessionID") == self.id:
                what = text_at(asked, "permission") or "something"
                raise GivenUp(Reason.REPORTED_FAILURE, f"it asked for a permission ({what}), and nobody can give one")

    async def _read(self, answer: Json) -> Turn:
        error = at(answer, "info", "error")
        if error is not None:
            raise GivenUp(_reason_of(error), _said(error))
        parts = at(answer, "parts")
        texts = [
            text_at(part, "text") or ""
            for part in (parts if isinstance(parts, list) else [])
            if text_at(part, "type") == "text" and not at(part, "synthetic") and not at(part, "ignored")
        ]
        if not texts:
            raise GivenUp(Reason.PARSE_ERROR, "it ended its turn without an answer")
        return Turn("".join(texts), *await self._tokens(at(answer, "info", "tokens")))

    async def _tokens(self, last: Json) -> tuple[int | None, int | None, int | None]:
        """What the turn used: the growth of the session's sum, else what its last message tells."""
        total = at(await self._call("GET", f"/session/{self.id}"), "tokens")
        read, written = _split(total)
        if read is None or written is None:
            read, written = _split(last)
            return count(read, written), read, written
        before, self._used = self._used, (read, written)
        read, written = max(0, read - before[0]), max(0, written - before[1])
        return read + written, read, written

    async def _abort(self, answer: asyncio.Future[Json]) -> None:
        """End the turn at the server; one that does not end is ended with the whole server."""
        try:
            async with asyncio.timeout(ABORT_S):
                await self._call("POST", f"/session/{self.id}/abort")
                await asyncio.wait({answer})
        except (ServerFailure, TimeoutError):
            pass
        if not answer.done():
            answer.cancel()
            await self._server.close()
        elif not answer.cancelled():
            answer.exception()  # asked for, so that nobody misses it

    async def _asked(self, path: str) -> Json:
        """What the server tells beside the answer; None where it does not know the question."""
        try:
            return await self._call("GET", path)
        except ServerFailure as problem:
            if problem.status is None:
                raise
            return None

    async def _call(self, method: str, path: str, body: Mapping[str, Any] | None = None) -> Json:
        return await self._server.call(method, path, self._folder, body)


def _split(tokens: Json) -> tuple[int | None, int | None]:
    """Tokens read, and written with what was only thought."""
    return count(at(tokens, "input")), count(at(tokens, "output"), at(tokens, "reasoning"))


def _said(error: Json) -> str:
    return text_at(error, "data", "message") or text_at(error, "name") or "an error"


def _reason_of(error: Json) -> Reason:
    """The failure of a unit that an error of the server means."""
    match text_at(error, "name"):
        case "MessageAbortedError":
            return Reason.ABORTED
        case "ContentFilterError":
            return Reason.LLM_CONTENT_FILTER
        case "APIError":
            status = at(error, "data", "statusCode")
            return Reason.LLM_RATE_LIMIT if status == 429 else Reason.DISPATCH_ERROR
        case "ProviderAuthError":
            return Reason.DISPATCH_ERROR
    return Reason.REPORTED_FAILURE
