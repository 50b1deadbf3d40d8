"""A reference to a workflow elsewhere → what it names: a file of a GitHub repository, or an address.

`github:owner/repo[@ref]//path`, or `https://…` and `http://…`; with `#sha256:<hex>` behind it only
those very bytes are accepted.
"""

from __future__ import annotations

import re

import msgspec

from flowstone.errors import SourceError, UsageError

LONGEST = 2_000
PREFIXES = ("github:", "https://", "http://")
_PIN = "#sha256:"
_GITHUB = re.compile(r"github:(?P<repo>[A-Za-z0-9][\w.-]*/[\w.-]+)(?:@(?P<ref>[^\s@?#]+?))?//(?P<path>[^\s].*)")
_PATH_SIGNS = "/%:@!$&'()*+,;=~-._"
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
    def name(self) -> str:
        """The reference without a digest: what a lock file knows the file by."""
        return self.text.partition(_PIN)[0]

    @property
    def commit(self) -> str | None:
        """The full commit that the reference itself names."""
        return self.ref.lower() if is_commit(self.ref) else None


def is_commit(ref: str) -> bool:
    """Whether it names one commit in full, which can never be another one."""
    return _COMMIT.fullmatch(ref) is not None


def is_remote(target: str) -> bool:
    return target.startswith(PREFIXES)


def parse_remote(target: str) -> Remote:
    """Read a reference; SourceError says what it must look like."""
    if len(target) > LONGEST:
        raise SourceError(f"{shown(target[:80])}…: a reference has at most {LONGEST:,} characters")
    body, pin, digest = target.partition(_PIN)
    if pin and not re.fullmatch(r"[0-9a-f]{64}", digest):
        raise SourceError(f"{shown(target)}: #sha256: must be followed by the 64 hex digits of a digest")
    remote = _github(body) if body.startswith("github:") else _address(body)
    return msgspec.structs.replace(remote, text=remote.text + pin + digest, digest=digest or None)


def beside(base: str, ref: str) -> str:
    """The reference that a relative path names which stands in the file at `base`; SourceError.

    It stays in the repository, or on the host, of that file: no path climbs out of it.
    """
    from urllib.parse import quote, urlsplit

    remote = parse_remote(base)
    if ref.startswith("/") or any(sign in ref for sign in "\\?#") or any(ord(sign) < 32 for sign in ref):
        raise SourceError(f"{ref}: a file that a remote one nests is named by a path relative to it")
    start = remote.path if remote.repo else urlsplit(remote.url).path.lstrip("/")
    parts = start.split("/")[:-1]
    for part in ref.split("/"):
        if part == ".." and not parts:
            where = "repository" if remote.repo else "host"
            raise SourceError(f"{ref}: the path leads out of the {where} of {remote.name}")
        if part == "..":
            parts.pop()
        elif part not in ("", "."):
            parts.append(part)
    path = "/".join(parts)
    if remote.repo:
        return f"github:{remote.repo}{f'@{remote.ref}' if remote.ref else ''}//{path}"
    address = urlsplit(remote.name)
    return f"{address.scheme}://{address.netloc}/{quote(path, safe=_PATH_SIGNS)}"


def at_commit(remote: Remote, commit: str) -> str:
    """The same file of a GitHub repository at a commit, as a reference."""
    return f"github:{remote.repo}@{commit}//{remote.path}"


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
            hint="flowstone vendor pins it in this folder; orun workflow digest prints the digest of a file.",
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
        raise SourceError(f"{shown(text)}: not an address: {error}") from None
    if not host or any(ord(sign) <= 32 or ord(sign) == 127 for sign in text):
        raise SourceError(f"{shown(text)}: not an address: want https://host/path/to/workflow.yaml")
    user = None if parts.username is None else (unquote(parts.username), unquote(parts.password or ""))
    spelt = f"[{host}]" if ":" in host else host
    place = spelt if port is None else f"{spelt}:{port}"
    path = quote(parts.path or "/", safe=_PATH_SIGNS)
    query = quote(parts.query, safe=f"{_PATH_SIGNS}?[]")
    kept = text if user is None else urlunsplit(parts._replace(netloc=place))
    url = urlunsplit(SplitResult(parts.scheme, place, path, query, ""))
    return Remote(kept, kept, url=url, user=user)


def shown(text: str) -> str:
    """An address that cannot be read, without what may be a password in it."""
    return re.sub(r"//[^/@]*@", "//…@", text)
