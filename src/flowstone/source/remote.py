"""A reference to a workflow elsewhere → what it names: a file of a GitHub repository, or an address.

`github:owner/repo[@ref]//path`, or `https://…` and `http://…`; with `#sha256:<hex>` behind it only
those very bytes are accepted.
"""

from __future__ import annotations

import re

import msgspec

from flowstone.errors import SourceError, UsageError

PREFIXES = ("github:", "https://", "http://")
_PIN = "#sha256:"
_GITHUB = re.compile(r"github:(?P<repo>[A-Za-z0-9][\w.-]*/[\w.-]+)(?:@(?P<ref>[^\s@?#]+?))?//(?P<path>[^\s].*)")
_COMMIT = re.compile(r"[0-9a-fA-F]{40}|[0-9a-fA-F]{64}")


class Remote(msgspec.Struct, frozen=True):
    """A parsed reference. `text` spells it without a user or password, for records and messages.

    Of GitHub `repo`, `ref` (empty for the default branch) and `path` are set, else `url`; `user` is
    the user and password of the address. `digest` are 64 hex digits, or None where any will do.
    """

    text: str
    label: str
    repo: str = ""
    ref: str = ""
    path: str = ""
    url: str = ""
    user: tuple[str, str] | None = None
    digest: str | None = None

    @property
    def commit(self) -> str | None:
        """The full commit that the reference itself names."""
        return self.ref.lower() if _COMMIT.fullmatch(self.ref) else None


def is_remote(target: str) -> bool:
    return target.startswith(PREFIXES)


def parse_remote(target: str) -> Remote:
    """Read a reference; SourceError says what it must look like."""
    body, pin, digest = target.partition(_PIN)
    if pin and not re.fullmatch(r"[0-9a-f]{64}", digest):
        raise SourceError(f"{_shown(target)}: #sha256: must be followed by the 64 hex digits of a digest")
    remote = _github(body) if body.startswith("github:") else _address(body)
    return msgspec.structs.replace(remote, text=remote.text + pin + digest, digest=digest or None)


def require_pinned(target: str) -> None:
    """UsageError for a remote reference behind which another file may be tomorrow."""
    if not is_remote(target):
        return
    remote = parse_remote(target)
    if remote.commit is None and remote.digest is None:
        what = "a full commit (@ and 40 hex digits) or " if remote.repo else ""
        raise UsageError(
            f"--frozen: {remote.text} may be another file tomorrow; the reference must hold {what}a digest "
            "(#sha256: and 64 hex digits, at its end)",
            hint="orun workflow digest prints the digest of a file.",
        )


def _github(text: str) -> Remote:
    match = _GITHUB.fullmatch(text)
    parts = match["path"].split("/") if match else []
    if match is None or any(part in ("", ".", "..") for part in parts) or _climbs(match["repo"]):
        raise SourceError(f"{text}: not a reference to a workflow: want github:owner/repo[@ref]//path/to/workflow.yaml")
    repo, ref = match["repo"], match["ref"] or ""
    label = f"{repo}@{ref}" if ref else repo
    return Remote(text, label, repo=repo, ref=ref, path=match["path"])


def _climbs(repo: str) -> bool:
    return repo.rpartition("/")[2] in (".", "..")


def _address(text: str) -> Remote:
    from urllib.parse import SplitResult, quote, unquote, urlsplit, urlunsplit

    try:
        parts = urlsplit(text)
        host, port = parts.hostname, parts.port
    except ValueError as error:
        raise SourceError(f"{_shown(text)}: not an address: {error}") from None
    if not host or any(ord(sign) <= 32 or ord(sign) == 127 for sign in text):
        raise SourceError(f"{_shown(text)}: not an address: want https://host/path/to/workflow.yaml")
    user = None if parts.username is None else (unquote(parts.username), unquote(parts.password or ""))
    spelt = f"[{host}]" if ":" in host else host
    place = spelt if port is None else f"{spelt}:{port}"
    path = quote(parts.path or "/", safe="/%:@!$&'()*+,;=~-._")
    query = quote(parts.query, safe="/%:@!$&'()*+,;=~-._?[]")
    shown = text if user is None else urlunsplit(parts._replace(netloc=place))
    url = urlunsplit(SplitResult(parts.scheme, place, path, query, ""))
    return Remote(shown, shown, url=url, user=user)


def _shown(text: str) -> str:
    """An address that cannot be read, without what may be a password in it."""
    return re.sub(r"//[^/@]*@", "//…@", text)
