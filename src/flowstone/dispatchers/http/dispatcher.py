"""Performs http units: sends one request, follows its redirects, and makes the answer an outcome."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from flowstone.dispatchers.http.answer import BODY_BYTES, DamagedBody, answer, read_body
from flowstone.dispatchers.http.failures import reason_of
from flowstone.dispatchers.http.request import BadRequest, Request, redirected, request_of
from flowstone.expr.model import Literal
from flowstone.plan.units import HttpSpec
from flowstone.ports.dispatcher import Dispatch
from flowstone.redaction import Redactor
from flowstone.run.outcome import Outcome, Reason, failed

REDIRECTS = 10
"""Redirects that are followed; the next one fails the request."""
AGENT = "flowstone"
_TOKEN_FIELDS = ("bearerToken", "token")
"""The fields of a bearer connection, any of which holds its token."""


class HttpDispatcher:
    """Sends requests of one run. `connections` are the granted fields by connection name.

    An answer of any status is a success; a request without an answer fails and never ran, so that
    it satisfies no poll. Proxies and further certificates come from the environment (HTTP_PROXY,
    HTTPS_PROXY, ALL_PROXY, NO_PROXY, SSL_CERT_FILE, SSL_CERT_DIR). Nothing is kept between
    requests: no cookies and no connections.
    """

    def __init__(self, connections: Mapping[str, Mapping[str, str]], redactor: Redactor) -> None:
        self._connections = connections
        self._redactor = redactor
        self._client: Any = None

    async def perform(self, dispatch: Dispatch) -> Outcome:
        spec = dispatch.spec
        assert isinstance(spec, HttpSpec)
        assert isinstance(spec.arguments, Literal)
        try:
            request = request_of(spec.arguments.value, self._token(spec.connection))
        except BadRequest as error:
            return self._failed(Reason.HTTP_ERROR, str(error))
        limit = None if dispatch.timeout_ms is None else dispatch.timeout_ms / 1000
        try:
            async with asyncio.timeout(limit) as bound:
                return await self._exchange(request, dispatch.unit, bound.when())
        except _out_of_time():
            return self._failed(Reason.TIMEOUT, f"timed out after {_spelt(dispatch.timeout_ms or 0)}: {request.label}")
        except (BadRequest, DamagedBody) as error:
            return self._failed(Reason.HTTP_ERROR, f"{request.label}: {error}")
        except _client_errors() as error:
            return self._failed(Reason.HTTP_ERROR, f"{request.label}: {reason_of(error)}")

    async def close(self) -> None:
        """Let the client go; closing twice does nothing."""
        client, self._client = self._client, None
        if client is not None:
            await client.aclose()

    async def _exchange(self, request: Request, unit: str, deadline: float | None) -> Outcome:
        """The outcome by the last answer, after at most `REDIRECTS` redirects."""
        if self._client is None:
            self._client = _new_client()
        for _ in range(REDIRECTS + 1):
            async with self._client.stream(
                request.method,
                request.url,
                headers=_wire(request.headers),
                content=request.body,
                timeout=_patience(deadline),
            ) as response:
                following = redirected(request, response.status_code, response.headers.get("location"))
                if following is None:
                    return await self._answer(response, unit)
                request = following
        raise BadRequest(f"stopped after {REDIRECTS} redirects, the last one to {request.url}")

    async def _answer(self, response: Any, unit: str) -> Outcome:
        limit = BODY_BYTES + 4 + 4 * self._redactor.longest
        body = await read_body(response.aiter_raw(), response.headers.get("content-encoding", ""), limit)
        value = answer(response.status_code, body, self._redactor)
        cut = f'unit "{unit}": the body was cut at {BODY_BYTES >> 20} MiB, so it has no json'
        return Outcome(value=value, warnings=(cut,) if len(body) > BODY_BYTES else ())

    def _token(self, connection: str | None) -> str | None:
        if connection is None:
            return None
        fields = self._connections.get(connection, {})
        token = next((fields[name] for name in _TOKEN_FIELDS if fields.get(name)), None)
        if token is None:
            raise BadRequest(f'connection "{connection}" was not granted')
        return token

    def _failed(self, reason: Reason, text: str) -> Outcome:
        return failed(reason, self._redactor.text(f"http.request: {text}"), ran=False)


def _new_client() -> Any:
    """A client without memory: each request has a connection of its own and no cookies are kept."""
    from http.cookiejar import DefaultCookiePolicy

    import httpx2

    limits = httpx2.Limits(max_connections=None, max_keepalive_connections=0)
    client = httpx2.AsyncClient(timeout=None, limits=limits, follow_redirects=False)
    client.cookies.jar.set_policy(DefaultCookiePolicy(allowed_domains=()))
    client.headers = httpx2.Headers({"user-agent": AGENT, "accept": "*/*", "accept-encoding": "gzip, deflate"})
    return client


def _patience(deadline: float | None) -> Any:
    """How long connecting may take: a little less than what is left.

    A handshake that is cancelled leaves its socket open; one that the client itself gives up does not.
    """
    import httpx2

    if deadline is None:
        return httpx2.Timeout(None)
    left = max(0.0, deadline - asyncio.get_running_loop().time())
    return httpx2.Timeout(None, connect=left - min(0.05, left / 10))


def _out_of_time() -> tuple[type[Exception], ...]:
    import httpx2

    return (TimeoutError, httpx2.ConnectTimeout)


def _client_errors() -> tuple[type[Exception], ...]:
    """What the client raises; beside its own errors what a bad proxy or certificate file in the
    environment makes it raise."""
    import httpx2

    return (httpx2.HTTPError, httpx2.InvalidURL, OSError, ValueError, ExceptionGroup)


def _wire(headers: Mapping[str, str]) -> list[tuple[bytes, bytes]]:
    return [(name.encode("ascii"), value.encode("utf-8")) for name, value in headers.items()]


def _spelt(milliseconds: int) -> str:
    from flowstone.expr.duration import format_go_duration

    return format_go_duration(milliseconds * 1_000_000)
