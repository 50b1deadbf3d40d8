"""A chat-completions server on this machine that answers from a script, well or badly.

It speaks HTTP/1.1 with kept connections, runs in a thread of its own, and keeps what it was asked.
"""

from __future__ import annotations

import asyncio
import json
import ssl
import threading
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

import msgspec


def _usage() -> dict[str, int]:
    return {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}


Raw = Callable[[asyncio.StreamWriter], Awaitable[None]]
"""Writes whatever it likes to the connection, which is closed afterwards."""


class Answer(msgspec.Struct, frozen=True):
    """One answer: `reply` is the text of the model, or else `body` the bytes of the whole body."""

    reply: str | None = ""
    status: int = 200
    finish: str = "stop"
    usage: Any = msgspec.field(default_factory=_usage)
    message: Mapping[str, Any] = {}
    headers: Mapping[str, str] = {}
    body: bytes | None = None
    delay_s: float = 0.0
    raw: Raw | None = None


class Asked(msgspec.Struct, frozen=True):
    """A request as it came in; header names are in lower case, `connection` numbers the connections."""

    body: dict[str, Any]
    headers: dict[str, str]
    connection: int

    @property
    def prompt(self) -> str:
        """The text of the last message."""
        return str(self.body["messages"][-1]["content"])


Script = Sequence[Answer] | Callable[[Asked], Answer]


class ModelServer:
    """Answers in order (the last answer again and again), or as a function says; use it with `with`.

    `asked` are the requests so far, `peak` is how many were answered at one time.
    """

    def __init__(self, script: Script | None = None, tls: ssl.SSLContext | None = None) -> None:
        """Without a script every answer is "ok"."""
        self.script = script or (Answer("ok"),)
        self._tls = tls
        self.asked: list[Asked] = []
        self.peak = 0
        self.connections = 0
        self._live = 0
        self._loop = asyncio.new_event_loop()
        self._ready = threading.Event()
        self._stop = asyncio.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._port = 0

    @property
    def endpoint(self) -> str:
        place = "http://127.0.0.1" if self._tls is None else "https://localhost"
        return f"{place}:{self._port}/v1/chat/completions"

    def __enter__(self) -> ModelServer:
        self._thread.start()
        self._ready.wait()
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join()
        self._loop.close()

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._loop.run_until_complete(self._serve())

    async def _serve(self) -> None:
        talks: set[asyncio.Task[None]] = set()

        async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            task = asyncio.current_task()
            assert task is not None
            talks.add(task)
            self.connections += 1
            try:
                while await self._answer_one(reader, writer, self.connections):
                    pass
            except (OSError, ValueError, asyncio.IncompleteReadError, asyncio.CancelledError):
                pass
            finally:
                talks.discard(task)
                writer.close()

        server = await asyncio.start_server(talk, "127.0.0.1", 0, ssl=self._tls)
        self._port = server.sockets[0].getsockname()[1]
        self._ready.set()
        await self._stop.wait()
        server.close()
        for task in list(talks):
            task.cancel()
        await asyncio.gather(*talks, return_exceptions=True)
        # A closed connection lets go of its socket when the loop comes round.
        await asyncio.sleep(0)

    async def _answer_one(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, number: int) -> bool:
        head = await reader.readuntil(b"\r\n\r\n")
        lines = head.decode("latin-1").split("\r\n")[1:]
        headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines) if name}
        data = await reader.readexactly(int(headers.get("content-length", 0)))
        asked = Asked(json.loads(data), headers, number)
        self._live += 1
        self.peak = max(self.peak, self._live)
        self.asked.append(asked)
        answer = self._pick(asked, len(self.asked) - 1)
        try:
            if answer.delay_s:
                await asyncio.sleep(answer.delay_s)
            if answer.raw is not None:
                await answer.raw(writer)
                return False
            writer.write(wire(answer))
            await writer.drain()
        finally:
            self._live -= 1
        return True

    def _pick(self, asked: Asked, place: int) -> Answer:
        if callable(self.script):
            return self.script(asked)
        return self.script[min(place, len(self.script) - 1)]


def wire(answer: Answer) -> bytes:
    """The whole answer as it goes over the wire."""
    body = answer.body if answer.body is not None else json.dumps(_completion(answer)).encode("utf-8")
    headers = {"content-type": "application/json", "content-length": str(len(body)), **answer.headers}
    lines = [f"HTTP/1.1 {answer.status} Status", *(f"{name}: {value}" for name, value in headers.items())]
    return "\r\n".join([*lines, "", ""]).encode("latin-1") + body


def _completion(answer: Answer) -> dict[str, Any]:
    if answer.status >= 400:
        return {"error": {"message": answer.reply}}
    message = {"role": "assistant", "content": answer.reply, **answer.message}
    choice = {"index": 0, "finish_reason": answer.finish, "message": message}
    return {"id": "c", "object": "chat.completion", "choices": [choice], "usage": answer.usage}
