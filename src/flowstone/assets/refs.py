"""Asset refs: the text `[bundle//]type/name` to its parts.

A ref names an asset by the folder of its type and its path below it, never by a path of the
machine.
"""

from __future__ import annotations

import re

import msgspec

from flowstone.errors import InputError

TYPES = (
    "workflows", "commands", "scripts", "tasks", "env", "secrets", "agents",
    "skills", "knowledge", "memories", "lessons", "facts",
)  # fmt: skip
BUNDLE = r"[A-Za-z0-9][A-Za-z0-9_-]*"


class Ref(msgspec.Struct, frozen=True):
    """`bundle` is None when the ref leaves the choice to the order of the bundles."""

    type: str
    name: str
    bundle: str | None = None

    def __str__(self) -> str:
        short = f"{self.type}/{self.name}"
        return short if self.bundle is None else f"{self.bundle}//{short}"


def parse_ref(text: str) -> Ref:
    """Read a ref; InputError says what is wrong with one that no asset can have."""
    if not text.strip():
        raise InputError(
            "The name of a file or ref is empty.", hint="Name a file (./release.md) or a ref (workflows/release)."
        )
    bundle, slashes, rest = text.strip().rpartition("//")
    if slashes and not re.fullmatch(BUNDLE, bundle):
        raise _wrong(text, f'"{bundle}" is no bundle name')
    kind, _, name = rest.partition("/")
    if kind not in TYPES:
        raise _wrong(text, f'"{kind}" is no asset type')
    if not name.isprintable() or ":" in name or "\\" in name:
        raise _wrong(text, "a name holds no colon, backslash or control character")
    if any(part in ("", ".", "..") for part in name.split("/")):
        raise InputError(
            f"Ref {text!r} leads outside its bundle: a name has no empty, `.` or `..` part.",
            code="PATH_ESCAPE_VIOLATION",
        )
    return Ref(kind, name, bundle if slashes else None)


def is_bundle_name(text: str) -> bool:
    """Whether a text can stand in front of the `//` of a ref."""
    return re.fullmatch(BUNDLE, text) is not None


def is_ref(text: str) -> bool:
    """Whether a text is meant as a ref: it begins with an asset type, behind an optional bundle."""
    return text.rpartition("//")[2].partition("/")[0] in TYPES and "/" in text


def _wrong(text: str, what: str) -> InputError:
    return InputError(
        f"{text!r} is not an asset ref: {what}.",
        hint="Write [bundle//]type/name, for example workflows/release; for a file its path, as in ./release.md.",
    )
