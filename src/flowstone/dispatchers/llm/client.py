"""Sends one POST and reads its answer, bounded in size and redirected nowhere; connections are reused.

Proxies and certificates come from the environment, as in any HTTP client (HTTP_PROXY, HTTPS_PROXY,
ALL_PROXY, NO_PROXY, SSL_CERT_FILE, SSL_CERT_DIR).
"""

from __future__ import annotations

import zlib
from collections.abc import AsyncIterator, Mapping
from typing import Any

import msgspec

from flowstone.plan.bounds import CONCURRENCY

BODY_BYTES = 8 * 1024 * 1024
CONNECT_SECONDS = 30.0
KEEP_SECONDS = 30.0
_WINDOWS = {"gzip": 31, "x-gzip": 31, "deflate": 15}


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

    def __init__(self) -> None:
        self._client: Any = None

    async def post(self, url: str, headers: Mapping[str, str], body: bytes) -> Received:
        """The answer of any status. Unreachable without one, UnreadableBody with one that cannot be kept."""
        errors = _client_errors()
        try:
            if self._client is None:
                self._client = _new_client()
            async with self._client.stream("POST", url, headers=headers, content=body) as response:
                encoding = response.headers.get("content-encoding", "")
                data = await read_body(response.aiter_raw(), encoding, BODY_BYTES)
                found = {name.lower(): value for name, value in response.headers.items()}
                return Received(response.status_code, found, data)
        except UnreadableBody:
            raise
        except errors as error:
            raise _unreachable(error) from error

    async def close(self) -> None:
        client, self._client = self._client, None
        if client is not None:
            await client.aclose()


async def read_body(chunks: AsyncIterator[bytes], encoding: str, limit: int) -> bytes:
    """A whole body, expanded piece by piece; UnreadableBody when it has more than `limit` bytes."""
    window = _WINDOWS.get(encoding.strip().lower())
    expander = None if window is None else zlib.decompressobj(window)
    body = bytearray()
    async for chunk in chunks:
        body += chunk if expander is None else _expanded(expander, chunk, limit + 1 - len(body))
        if len(body) > limit:
            raise UnreadableBody(f"its body has more than {limit} bytes")
    if expander is not None and body and not expander.eof:
        raise UnreadableBody("its compressed body ends too early")
    return bytes(body)


def _expanded(expander: Any, chunk: bytes, room: int) -> bytes:
    try:
        return bytes(expander.decompress(chunk, room))
    except zlib.error as error:
        raise UnreadableBody(f"its body is not compressed as its header says ({error})") from None


def _new_client() -> Any:
    from http.cookiejar import DefaultCookiePolicy

    import httpx2

    limits = httpx2.Limits(max_connections=None, max_keepalive_connections=CONCURRENCY, keepalive_expiry=KEEP_SECONDS)
    timeout = httpx2.Timeout(None, connect=CONNECT_SECONDS)
    client = httpx2.AsyncClient(timeout=timeout, limits=limits, follow_redirects=False)
    client.cookies.jar.set_policy(DefaultCookiePolicy(allowed_domains=()))
    client.headers = httpx2.Headers({"user-agent": "flowstone", "accept-encoding": "gzip, deflate"})
    return client


def _client_errors() -> tuple[type[Exception], ...]:
    """What the client raises, beside its own errors for a bad proxy or certificate of the environment."""
    import httpx2

    return (httpx2.HTTPError, httpx2.InvalidURL, OSError, ValueError, ExceptionGroup)


def _unreachable(error: Exception) -> Unreachable:
    import ssl

    causes = list(_chain(error))
    for cause in causes:
        if isinstance(cause, ssl.SSLCertVerificationError):
            text = f"its certificate is not trusted: {cause.verify_message} (SSL_CERT_FILE names further ones)"
            return Unreachable(text, dropped=False)
        if isinstance(cause, (ConnectionResetError, BrokenPipeError)):
            return Unreachable("it broke the connection off", dropped=True)
        if isinstance(cause, OSError) and cause.strerror:
            return Unreachable(f"no connection: {cause.strerror}", dropped=False)
    name, text = type(error).__name__, str(error)
    dropped = name in ("RemoteProtocolError", "ReadError", "WriteError", "CloseError")
    return Unreachable(f"{'it broke off: ' if dropped else ''}{text or name}", dropped=dropped)


def _chain(error: BaseException | None) -> Any:
    """The error and what caused it, the innermost first."""
    found = []
    while error is not None:
        inner = error.exceptions[0] if isinstance(error, ExceptionGroup) else None
        found.append(error)
        error = inner or error.__cause__ or error.__context__
    return reversed(found)
