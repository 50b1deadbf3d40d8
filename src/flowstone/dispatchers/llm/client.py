"""Sends a request and reads its answer, bounded in size and redirected nowhere; connections are reused.

Proxies and further certificates come from the environment, as in any HTTP client (HTTP_PROXY,
HTTPS_PROXY, ALL_PROXY, NO_PROXY, SSL_CERT_FILE, SSL_CERT_DIR).
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from datetime import timedelta
from typing import Any

import msgspec

from flowstone.dispatchers.llm.ending import end_in_order
from flowstone.plan.bounds import CONCURRENCY

BODY_BYTES = 8 * 1024 * 1024
CONNECT_SECONDS = 30
KEEP_SECONDS = 30
_CHUNK = 64 * 1024


class Unreachable(Exception):
    """There is no answer: the message says why. `dropped` when there was a connection that broke."""

    def __init__(self, message: str, *, dropped: bool) -> None:
        super().__init__(message)
        self.dropped = dropped


class UnreadableBody(ValueError):
    """The answer's body is too large or damaged."""


class Received(msgspec.Struct, frozen=True):
    """An answer; header names are in lower case."""

    status: int
    headers: Mapping[str, str]
    body: bytes


class ModelClient:
    """The connections of one run to its models, opened when they are first needed."""

    def __init__(self, *, direct: bool = False) -> None:
        """`direct`: no proxy of the environment is used."""
        self._direct = direct
        self._client: Any = None

    async def post(self, url: str, headers: Mapping[str, str], body: bytes) -> Received:
        """The answer to a POST, as `request` gives it."""
        return await self.request("POST", url, headers, body)

    async def request(self, method: str, url: str, headers: Mapping[str, str], body: bytes | None = None) -> Received:
        """The answer of any status. Unreachable without one, UnreadableBody with one that cannot be kept."""
        from pyreqwest.exceptions import DecodeError, PyreqwestError

        try:
            if self._client is None:
                self._client = _new_client(direct=self._direct)
            request = self._client.request(method, url).headers(headers)
            if body is not None:
                request = request.body_bytes(body)
            async with request.build_streamed() as response:
                data = await read_body(_pieces(response.body_reader), BODY_BYTES)
                return Received(response.status, {k.lower(): v for k, v in response.headers.items()}, data)
        except DecodeError as error:
            causes = _causes(error)
            if _DAMAGED in causes and not any(cause in _BROKE_OFF for cause in causes):
                raise UnreadableBody(f"its body is not encoded as its header says ({causes[-1]})") from error
            raise _unreachable(causes) from error
        except PyreqwestError as error:
            raise _unreachable(_causes(error)) from error
        except UnreadableBody:
            raise
        except ValueError as error:
            raise Unreachable(str(error), dropped=False) from error

    async def close(self) -> None:
        """Close the connections; closing twice does nothing."""
        client, self._client = self._client, None
        if client is not None:
            await client.close()


async def read_body(pieces: AsyncIterator[bytes], limit: int) -> bytes:
    """A whole body; UnreadableBody as soon as it has more than `limit` bytes."""
    body = bytearray()
    async for piece in pieces:
        body += piece
        if len(body) > limit:
            raise UnreadableBody(f"its body has more than {limit} bytes")
    return bytes(body)


async def _pieces(reader: Any) -> AsyncIterator[bytes]:
    """The body as it comes in, expanded piece by piece."""
    while piece := await reader.read(_CHUNK):
        yield bytes(piece)


def _new_client(*, direct: bool) -> Any:
    from pyreqwest.client import ClientBuilder

    end_in_order()
    builder = ClientBuilder().no_proxy() if direct else ClientBuilder()
    return (
        builder.user_agent("flowstone")
        .error_for_status(False)
        .follow_redirects(False)
        .referer(False)
        .connect_timeout(timedelta(seconds=CONNECT_SECONDS))
        .pool_idle_timeout(timedelta(seconds=KEEP_SECONDS))
        .pool_max_idle_per_host(CONCURRENCY)
        .build()
    )


def _causes(error: Any) -> list[str]:
    """What went wrong in the library's words, the outermost first; the request itself left out."""
    causes = (error.details or {}).get("causes") if hasattr(error, "details") else None
    found = [cause["message"] for cause in causes or ()]
    return [text for text in found if not text.startswith("error sending request")] or [str(error)]


_DAMAGED = "error decoding response body"
_BROKE_OFF = (
    "connection closed before message completed",
    "end of file before message length reached",
    "error reading a body from connection",
)


def _unreachable(causes: list[str]) -> Unreachable:
    """`dropped` is a connection that stood before it broke, whatever broke it."""
    text = causes[-1].partition(" (os error")[0]
    if "certificate" in text.lower():
        text += " (SSL_CERT_FILE names a file of further certificates to trust)"
    return Unreachable(text, dropped="client error (Connect)" not in causes)
