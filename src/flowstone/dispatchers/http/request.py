"""The evaluated `with:` of a request, and what its connection grants → a request ready to be sent.

Everything that would be refused on the wire is refused here, in the author's words.
"""

from __future__ import annotations

import json
import re
from base64 import b64encode
from collections.abc import Iterator, Mapping
from urllib.parse import SplitResult, quote, unquote, urlencode, urljoin, urlsplit, urlunsplit

import msgspec

from flowstone.expr.cel_values import stringify
from flowstone.values import Json, type_name

ARGUMENTS = ("url", "method", "body", "headers")
_DEFAULT_PORTS = {"http": 80, "https": 443}
_TO_GET = (301, 302, 303)
_REDIRECTS = (*_TO_GET, 307, 308)
_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_FORM = "application/x-www-form-urlencoded"
_PRIVATE = ("authorization", "cookie", "proxy-authorization", "www-authenticate")
"""Headers that another host than the one they were meant for does not get."""
_OF_BODY = ("content-type", "content-length", "content-encoding", "content-language", "transfer-encoding")


class BadRequest(ValueError):
    """A request that cannot be sent; the message says what to write instead and shows no secret."""


class Request(msgspec.Struct, frozen=True):
    """One request: an absolute `url` without user and fragment, header names in lower case."""

    method: str
    url: str
    headers: Mapping[str, str]
    body: bytes | None = None

    @property
    def label(self) -> str:
        """How errors name the request."""
        return f"{self.method} {self.url}"


def request_of(arguments: Json, token: str | None) -> Request:
    """The request of a `with:`; a `token` replaces an Authorization header and the user of the URL."""
    if not isinstance(arguments, dict):
        raise BadRequest("with must be a mapping")
    unknown = [name for name in arguments if name not in ARGUMENTS]
    if unknown:
        raise BadRequest(f"unknown with.{unknown[0]} (it takes {', '.join(ARGUMENTS)})")
    url, user = _absolute(arguments.get("url"))
    headers = dict(_headers(arguments.get("headers")))
    if user is not None:
        headers.setdefault("authorization", user)
    if token is not None:
        if not _fits_header(token):
            raise BadRequest("the token of the connection holds a line break or NUL, which no header can carry")
        headers["authorization"] = f"Bearer {token}"
    body = _body(arguments.get("body"), headers)
    return Request(_method(arguments.get("method")), url, headers, body)


def redirected(request: Request, status: int, location: str | None) -> Request | None:
    """The request that an answer asks for; None where it asks for none. BadRequest for a bad address.

    301, 302 and 303 turn everything but HEAD into GET without a body. What identifies the sender is
    left out as soon as the address is on another host, port or scheme (http to https apart).
    """
    if status not in _REDIRECTS or not location:
        return None
    try:
        url, user = _absolute(urljoin(request.url, location))
    except BadRequest as error:
        raise BadRequest(f"the answer {status} redirects to an address that cannot be requested: {error}") from None
    headers = dict(request.headers)
    if not _same_host(urlsplit(request.url), urlsplit(url)):
        for name in (*_PRIVATE, "host"):
            headers.pop(name, None)
    if user is not None:
        headers.setdefault("authorization", user)
    if status not in _TO_GET or request.method in ("GET", "HEAD"):
        return Request(request.method, url, headers, request.body)
    kept = {name: value for name, value in headers.items() if name not in _OF_BODY}
    return Request("GET", url, kept)


def _absolute(url: Json) -> tuple[str, str | None]:
    """The address without its user and fragment, and the Authorization header of that user."""
    if not isinstance(url, str) or not url.strip():
        raise BadRequest("with.url is required: an address such as https://example.org/path")
    text = url.strip()
    if any(ord(sign) < 32 or ord(sign) == 127 for sign in text):
        raise BadRequest("with.url holds a line break or another control character")
    try:
        parts = urlsplit(text)
        host, port = parts.hostname, parts.port
        text.encode("utf-8")
    except ValueError as error:
        raise BadRequest(f"with.url is no address: {error}") from None
    if parts.scheme not in _DEFAULT_PORTS or not host:
        raise BadRequest("with.url must be an absolute address that begins with http:// or https://")
    spelt = f"[{host}]" if ":" in host else host
    place = spelt if port is None else f"{spelt}:{port}"
    path = quote(parts.path or "/", safe="/%:@!$&'()*+,;=~-._")
    query = quote(parts.query, safe="/%:@!$&'()*+,;=~-._?[]")
    return urlunsplit(SplitResult(parts.scheme, place, path, query, "")), _user(parts)


def _user(parts: SplitResult) -> str | None:
    if parts.username is None:
        return None
    pair = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
    return f"Basic {b64encode(pair.encode()).decode()}"


def _method(method: Json) -> str:
    if method is None:
        return "GET"
    if not isinstance(method, str) or not _TOKEN.fullmatch(method.strip()):
        raise BadRequest("with.method must be the name of a method, such as POST")
    return method.strip().upper()


def _headers(headers: Json) -> Iterator[tuple[str, str]]:
    if headers is None:
        return
    if not isinstance(headers, dict):
        raise BadRequest(f"with.headers must be a mapping of names to texts, got {type_name(headers)}")
    for name, value in headers.items():
        if not _TOKEN.fullmatch(name):
            raise BadRequest(f"with.headers: {json.dumps(name)} is no name of a header")
        if value is None or isinstance(value, (dict, list)):
            raise BadRequest(f"with.headers.{name} must be a text, got {type_name(value)}")
        text = stringify(value).strip(" \t")
        if not _fits_header(text):
            raise BadRequest(f"with.headers.{name} holds a line break or NUL, which no header can carry")
        yield name.lower(), text


def _fits_header(text: str) -> bool:
    return not any(sign in text for sign in "\r\n\0") and _is_unicode(text)


def _body(body: Json, headers: dict[str, str]) -> bytes | None:
    """Text as it stands; a mapping or list as JSON, or as a form where Content-Type says so."""
    if body is None:
        return None
    if isinstance(body, (dict, list)):
        kind = headers.get("content-type", "").partition(";")[0].strip().lower()
        if kind == _FORM and isinstance(body, dict):
            return urlencode(list(_form(body))).encode()
        headers.setdefault("content-type", "application/json")
        text = json.dumps(body, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    else:
        text = stringify(body)
    if not _is_unicode(text):
        raise BadRequest("with.body holds a lone surrogate (half of a character)")
    return text.encode("utf-8")


def _form(body: Mapping[str, Json]) -> Iterator[tuple[str, str]]:
    """The fields of a form; a list repeats its field, null leaves it out."""
    for name, value in body.items():
        for item in value if isinstance(value, list) else [value]:
            if isinstance(item, (dict, list)):
                raise BadRequest(f"with.body.{name}: a field of a form must be a text, got {type_name(item)}")
            if item is not None:
                yield name, stringify(item)


def _same_host(before: SplitResult, after: SplitResult) -> bool:
    if before.hostname != after.hostname:
        return False
    ports = (before.port or _DEFAULT_PORTS[before.scheme], after.port or _DEFAULT_PORTS[after.scheme])
    if before.scheme == after.scheme:
        return ports[0] == ports[1]
    return before.scheme == "http" and ports == (80, 443)


def _is_unicode(text: str) -> bool:
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True
