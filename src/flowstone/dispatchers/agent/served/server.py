"""Starts `opencode serve` for a run and speaks its HTTP API; the server lives until the run's drive ends.

It listens on this machine only and asks for a password that nobody else knows. Whatever goes wrong
on the way is a ServerFailure.
"""

from __future__ import annotations

import asyncio
import json
import re
from base64 import b64encode
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

from flowstone.dispatchers.llm.client import ModelClient, Unreachable, UnreadableBody
from flowstone.dispatchers.process.capture import decode
from flowstone.dispatchers.process.diagnostics import how_it_ended, not_started, tail_of
from flowstone.dispatchers.process.dispatcher import Service
from flowstone.dispatchers.process.result import Performed
from flowstone.plan.bounds import STDERR_TAIL_CHARS
from flowstone.values import Json, JsonError, decode_json

START_S = 60.0
"""Seconds that a server may take until it listens."""
USER = "opencode"
_LISTENS = re.compile(r"listening on (http://\S+)")


class ServerFailure(Exception):
    """The server cannot be used, or answered with an error; the message is not redacted."""

    def __init__(self, message: str, status: int | None = None) -> None:
        super().__init__(message)
        self.status = status


class Announcement:
    """Looks for the address in what a server prints when it is ready."""

    def __init__(self) -> None:
        self._seen = bytearray()
        self._found: asyncio.Future[str] = asyncio.get_running_loop().create_future()

    def feed(self, data: bytes) -> None:
        if not self._found.done():
            self._seen += data
            whole, _, _ = decode(bytes(self._seen)).rpartition("\n")
            match = _LISTENS.search(whole)
            if match is not None:
                self._found.set_result(match[1])

    async def address(self, service: Service) -> str:
        """The server's address; ServerFailure when it ends before, or takes too long."""
        ended = asyncio.ensure_future(service.ended())
        try:
            await asyncio.wait((self._found, ended), timeout=START_S, return_when=asyncio.FIRST_COMPLETED)
            if self._found.done():
                return self._found.result()
            if ended.done():
                raise ServerFailure(_died(ended.result()))
            raise ServerFailure(f"it did not listen within {START_S:.0f} seconds")
        finally:
            ended.cancel()


class Server:
    """A server that listens. `call` is one request to it."""

    def __init__(self, service: Service, address: str, password: str) -> None:
        self.service = service
        self._address = address
        self._client = ModelClient(direct=True)
        token = b64encode(f"{USER}:{password}".encode()).decode("ascii")
        self._headers = {"authorization": f"Basic {token}", "content-type": "application/json"}

    async def call(self, method: str, path: str, folder: str, body: Mapping[str, Any] | None = None) -> Json:
        """The JSON that a request gives; `folder` is where the agent works."""
        url = f"{self._address}{path}?directory={quote(folder, safe='')}"
        sent = None if body is None else json.dumps(body).encode("utf-8")
        try:
            received = await self._client.request(method, url, self._headers, sent)
        except Unreachable as error:
            raise ServerFailure(f"it broke off or cannot be reached ({error})") from error
        except UnreadableBody as error:
            raise ServerFailure(f"its answer cannot be read: {error}") from error
        if not 200 <= received.status < 300:
            raise ServerFailure(f"it answered {received.status}: {_message(received.body)}", received.status)
        try:
            return decode_json(received.body)
        except JsonError:
            raise ServerFailure("it answered with no JSON") from None

    async def close(self) -> None:
        """End the server with all that its agents have started."""
        await self._client.close()
        await self.service.end()


def _message(data: bytes) -> str:
    """The message of an error in the server's shape, else the beginning of the body."""
    try:
        body = decode_json(data)
    except JsonError:
        body = None
    inner = body.get("data") if isinstance(body, dict) else None
    message = inner.get("message") if isinstance(inner, dict) else None
    return message if isinstance(message, str) else decode(data[:500]).strip() or "an empty body"


def _died(performed: Performed) -> str:
    if performed.ending.not_started is not None:
        return not_started(*performed.ending.not_started, performed.argv[0], performed.cwd)
    stderr = tail_of(decode(performed.stderr.data).strip(), STDERR_TAIL_CHARS)
    text = f"it {how_it_ended(performed.ending.status)} before it listened"
    return f"{text}. stderr:\n{stderr}" if stderr else text
