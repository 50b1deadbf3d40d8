"""A remote reference → the source text behind it, with where it came from; over HTTP, within bounds.

The token of the environment goes to the GitHub API alone: it leaves with no redirect to another
host, is sent to no other address, and is in no message.
"""

from __future__ import annotations

import time
from base64 import b64encode
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import quote, urljoin, urlsplit

import msgspec

from flowstone.errors import DigestMismatch, SourceError
from flowstone.source.file import Origin, SourceText, text_of
from flowstone.source.remote import Remote, at_commit, is_commit
from flowstone.values import JsonError, decode_json

BODY_BYTES = 4 * 1024 * 1024
REDIRECTS = 5
WAIT_S = 30.0
"""How long the other side may keep silent; a whole fetch may take twice as long."""
API_URL = "https://api.github.com"
TOKENS = ("GITHUB_TOKEN", "GH_TOKEN")

Explain = Callable[[BaseException], str]
"""One sentence about an exception of the HTTP client."""


class Fetched(msgspec.Struct, frozen=True):
    """A fetched workflow: `data` are its raw bytes, `commit` is empty where none is known."""

    source: SourceText
    label: str
    commit: str
    data: bytes = b""

    @property
    def notice(self) -> str:
        verb = "vendored" if self.origin.pinned else "fetched"
        return f"{verb} workflow from {self.label}" + (f" ({self.commit[:12]})" if self.commit else "")

    @property
    def origin(self) -> Origin:
        assert self.source.origin is not None
        return self.source.origin


class _Refused(Exception):
    """The other side gave no file; the message says why."""


def fetch(remote: Remote, env: Mapping[str, str], explain: Explain) -> Fetched:
    """Get the file that a reference names. SourceError; DigestMismatch where it is not the pinned one."""
    token = _token(env)
    with _client() as client:
        exchange = _Exchange(client, explain)
        try:
            data = exchange.get(*_file(remote, env, token))
        except _Refused as error:
            hint = " (private repo? set GITHUB_TOKEN)" if remote.repo and token is None else ""
            raise SourceError(f"fetch workflow from {remote.label}: {error}{hint}") from None
        commit = _commit(remote, env, token, exchange) if remote.repo else ""
    return fetched(remote, data, commit)


def fetched(remote: Remote, data: bytes, commit: str, *, pinned: bool = False) -> Fetched:
    """The bytes behind a reference as a source. SourceError; DigestMismatch."""
    source = text_of(data, remote.text)
    if remote.digest is not None and source.digest != remote.digest:
        raise DigestMismatch(
            f"fetch workflow from {remote.label}: it has digest sha256:{source.digest}, "
            f"not sha256:{remote.digest} as the reference demands"
        )
    base = remote.name if not remote.repo else at_commit(remote, commit) if is_commit(commit) else ""
    origin = Origin(base, _provenance(remote, commit), pinned)
    return Fetched(msgspec.structs.replace(source, origin=origin), remote.label, commit, data)


def resolve_commit(remote: Remote, env: Mapping[str, str], explain: Explain) -> str:
    """The full commit behind the ref of a GitHub reference; SourceError where it cannot be told."""
    with _client() as client:
        commit = _commit(remote, env, _token(env), _Exchange(client, explain))
    if not is_commit(commit):
        raise SourceError(
            f"fetch workflow from {remote.label}: GitHub does not tell the commit behind it"
            + ("" if _token(env) else " (private repo? set GITHUB_TOKEN)")
        )
    return commit


def _token(env: Mapping[str, str]) -> str | None:
    return next((env[name].strip() for name in TOKENS if env.get(name, "").strip()), None)


def _provenance(remote: Remote, commit: str) -> tuple[tuple[str, str], ...]:
    pairs = (("REPO", remote.repo), ("REF", remote.ref), ("SHA", commit), ("URL", "" if remote.repo else remote.label))
    return tuple((f"ORUN_FLOW_SOURCE_{name}", value) for name, value in pairs)


def _file(remote: Remote, env: Mapping[str, str], token: str | None) -> tuple[str, dict[str, str]]:
    """Address and headers of the file itself."""
    if not remote.repo:
        if remote.user is None:
            return remote.url, {}
        pair = b64encode(":".join(remote.user).encode()).decode()
        return remote.url, {"authorization": f"Basic {pair}"}
    query = f"?ref={quote(remote.ref, safe='')}" if remote.ref else ""
    url = f"{_api(env)}/repos/{remote.repo}/contents/{quote(remote.path)}{query}"
    return url, {"accept": "application/vnd.github.raw+json", **_bearer(token)}


def _commit(remote: Remote, env: Mapping[str, str], token: str | None, exchange: _Exchange) -> str:
    """The commit behind the ref, as far as it can be told."""
    if remote.commit is not None:
        return remote.commit
    url = f"{_api(env)}/repos/{remote.repo}/commits/{quote(remote.ref or 'HEAD')}"
    try:
        answer = decode_json(exchange.get(url, {"accept": "application/vnd.github+json", **_bearer(token)}))
    except (_Refused, JsonError):
        return ""
    found = answer.get("sha") if isinstance(answer, dict) else None
    return found if isinstance(found, str) and found.isalnum() and found.isascii() else ""


def _api(env: Mapping[str, str]) -> str:
    return (env.get("ORUN_GITHUB_API_URL", "").strip() or API_URL).rstrip("/")


def _bearer(token: str | None) -> dict[str, str]:
    return {} if token is None else {"authorization": f"Bearer {token}"}


class _Exchange:
    """Gets files over one client; follows redirects itself, so that nothing private goes astray."""

    def __init__(self, client: Any, explain: Explain) -> None:
        self._client = client
        self._explain = explain

    def get(self, url: str, headers: dict[str, str]) -> bytes:
        deadline = time.monotonic() + 2 * WAIT_S
        try:
            for _ in range(REDIRECTS + 1):
                with self._client.stream("GET", url, headers=headers) as response:
                    if not response.has_redirect_location:
                        return _body(response, deadline)
                    following = urljoin(url, response.headers["location"])
                if _origin(following) != _origin(url):
                    headers = {name: value for name, value in headers.items() if name != "authorization"}
                if not following.startswith("https://") and not url.startswith("http://"):
                    raise _Refused("it redirects from https to an address that is not")
                url = following
        except _client_errors() as error:
            raise _Refused(self._explain(error)) from None
        raise _Refused(f"more than {REDIRECTS} redirects")


def _body(response: Any, deadline: float) -> bytes:
    status = response.status_code
    if status != 200:
        raise _Refused(f"the server answered {status} {response.reason_phrase}".rstrip())
    if response.headers.get("content-encoding", "identity").lower() not in ("", "identity"):
        raise _Refused("the answer is compressed, which was not asked for")
    body = bytearray()
    for chunk in response.iter_raw():
        body += chunk
        if len(body) > BODY_BYTES:
            raise _Refused(f"it has more than {BODY_BYTES:,} bytes")
        if time.monotonic() > deadline:
            raise _Refused(f"it did not arrive within {2 * WAIT_S:.0f}s")
    return bytes(body)


def _origin(url: str) -> tuple[str, str | None, int | None]:
    parts = urlsplit(url)
    return parts.scheme, parts.hostname, parts.port


def _client() -> Any:
    import httpx2

    limits = httpx2.Limits(max_keepalive_connections=0)
    client = httpx2.Client(timeout=WAIT_S, limits=limits, follow_redirects=False)
    client.headers = httpx2.Headers({"user-agent": "flowstone", "accept": "*/*", "accept-encoding": "identity"})
    return client


def _client_errors() -> tuple[type[Exception], ...]:
    import httpx2

    return (httpx2.HTTPError, httpx2.InvalidURL, OSError, ValueError)
