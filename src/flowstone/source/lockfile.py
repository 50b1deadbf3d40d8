"""The text of `flowstone.lock` ↔ the files that it pins: by reference, commit, path and digest.

One spelling only: the same pins always give the same bytes. Whatever is not as it should be is
refused as a whole, since a lock that is half believed pins nothing.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from typing import Any
from urllib.parse import quote, urlsplit

import msgspec

from flowstone.errors import SourceError
from flowstone.source.remote import Remote, at_commit, is_commit, is_remote, parse_remote, shown
from flowstone.values import pretty_json

LOCK_NAME = "flowstone.lock"
FOLDER = "flowstone.vendor"
VERSION = 1
LOCK_BYTES = 4 * 1024 * 1024
_DIGEST = re.compile(r"sha256:[0-9a-f]{64}")
_SAFE = "@!$&'()+,;=~-._ "
"""Signs of a path that stay as they are in the name of a file."""


class Pin(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """A pinned file. `path` starts from the folder of the lock, `digest` is `sha256:` and 64 hex digits.

    `reference` is what a `workflow:` or a command names it by, without a digest. `targets` are the
    references or files that were vendored and need it.
    """

    reference: str
    digest: str
    path: str
    targets: tuple[str, ...]
    commit: str = ""

    @property
    def hex(self) -> str:
        return self.digest.removeprefix("sha256:")


class Lock(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`files` are sorted by reference, each named once."""

    files: tuple[Pin, ...] = ()
    version: int = VERSION

    @property
    def targets(self) -> tuple[str, ...]:
        """What was vendored, sorted."""
        return tuple(sorted({target for pin in self.files for target in pin.targets}))

    def by_name(self) -> dict[str, Pin]:
        """The pins by what may name them: their reference, or the same file at its commit."""
        named = {_at_commit(pin): pin for pin in self.files}
        return named | {pin.reference: pin for pin in self.files}


def pin_of(remote: Remote, digest: str, commit: str, targets: Iterable[str]) -> Pin:
    """The pin of a file with its place; `digest` are 64 hex digits."""
    path = place_of(remote, digest, commit)
    return Pin(remote.name, f"sha256:{digest}", path, tuple(sorted(targets)), commit)


def place_of(remote: Remote, digest: str, commit: str) -> str:
    """Where a pinned file lies: below a folder of its commit, or of its digest; no bytes ever replace others."""
    if remote.repo:
        parts = ["github", *remote.repo.split("/"), commit, *remote.path.split("/")]
    else:
        address = urlsplit(remote.url)
        last = f"?{address.query}" if address.query else ""
        parts = [address.scheme, address.netloc, digest[:16], *f"{address.path}{last}".lstrip("/").split("/")]
    return "/".join([FOLDER, *(_part(part) for part in parts)])


def encode_lock(files: Iterable[Pin]) -> str:
    """The text of a lock that pins these files."""
    ordered = sorted(files, key=lambda pin: pin.reference)
    return pretty_json({"version": VERSION, "files": [_spelt(pin) for pin in ordered]}) + "\n"


def _spelt(pin: Pin) -> dict[str, Any]:
    commit = {"commit": pin.commit} if pin.commit else {}
    return {
        "reference": pin.reference,
        **commit,
        "digest": pin.digest,
        "path": pin.path,
        "targets": list(pin.targets),
    }


def decode_lock(data: bytes, path: str) -> Lock:
    """Read the bytes of the lock at `path`; SourceError for one that is not sound in every part."""
    try:
        lock = msgspec.json.decode(data, type=Lock, strict=True)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise _unsound(path, str(error)) from None
    if lock.version != VERSION:
        raise _unsound(path, f"it has version {lock.version}, and this flowstone knows {VERSION}")
    counts = Counter(pin.reference for pin in lock.files)
    digests: dict[str, str] = {}
    for pin in lock.files:
        complaint = "it is pinned twice" if counts[pin.reference] > 1 else _complaint(pin)
        if complaint is None and digests.setdefault(pin.path, pin.digest) != pin.digest:
            complaint = "another file is pinned at its path"
        if complaint is not None:
            raise _unsound(path, f"{shown(pin.reference)}: {complaint}")
    return lock


def _complaint(pin: Pin) -> str | None:
    """What is wrong with a pin; None for nothing."""
    if not is_remote(pin.reference):
        return "it is no remote reference"
    try:
        remote = parse_remote(pin.reference)
    except SourceError as error:
        return error.message
    if remote.user is not None or remote.digest is not None:
        return "a reference holds neither a password nor a digest here"
    if not _DIGEST.fullmatch(pin.digest):
        return "its digest must be sha256: and 64 hex digits"
    if not (is_commit(pin.commit) if remote.repo else pin.commit == ""):
        return "its commit must be a full one" if remote.repo else "an address has no commit"
    if remote.commit is not None and remote.commit != pin.commit:
        return f"it is pinned to another commit, {pin.commit}"
    if not pin.targets:
        return "nothing needs it (targets is empty)"
    expected = place_of(remote, pin.hex, pin.commit)
    return None if pin.path == expected else f"its path must be {expected}"


def _at_commit(pin: Pin) -> str:
    remote = parse_remote(pin.reference)
    return at_commit(remote, pin.commit) if remote.repo else pin.reference


def _part(text: str) -> str:
    """A part of a path as the name of a file that leads nowhere else, on any system."""
    spelt = quote(text, safe=_SAFE)
    if spelt.strip(". ") == "":
        spelt = spelt.replace(".", "%2E").replace(" ", "%20") or "%"
    if spelt.endswith((".", " ")):
        spelt = f"{spelt[:-1]}%{ord(spelt[-1]):02X}"
    return spelt if len(spelt) <= 200 else f"{spelt[:150]}-{_short(spelt)}"


def _short(text: str) -> str:
    from flowstone.values import sha256_hex

    return sha256_hex(text.encode())[:16]


def _unsound(path: str, why: str) -> SourceError:
    return SourceError(
        f"{path}: {why}", hint="Restore the file from version control, or vendor the workflows again: flowstone vendor"
    )
