"""Bundles: folders of assets. Resolves a ref to a file that really lies inside its bundle."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator

import msgspec

from flowstone.assets.refs import Ref
from flowstone.errors import NotFound, SourceError

MAX_BYTES = 5_000_000
"""Bytes that any asset may have; secrets have the largest bound (akm facts 13)."""

SCRIPT_SUFFIXES = (
    ".sh", ".ts", ".js", ".ps1", ".cmd", ".bat", ".py", ".rb", ".go", ".pl",
    ".php", ".lua", ".r", ".swift", ".kt", ".kts",
)  # fmt: skip
SUFFIXES: dict[str, tuple[str, ...]] = {
    "workflows": ("", ".md", ".yml"),
    "scripts": ("", *SCRIPT_SUFFIXES),
    "tasks": ("", ".yml"),
    "env": ("", ".env"),
    "secrets": ("",),
}
"""What a name is tried with, in this order; other types: "", .md and .yml (akm facts 28)."""

SENSITIVE = ".sensitive"
"""Marks a folder (as a file in it) or one asset (behind its name) as kept out of listings."""


class Bundle(msgspec.Struct, frozen=True):
    """A named asset root; the folder need not exist. `origin` tells who named it: config, project,
    environment or default."""

    name: str
    root: str
    origin: str = "config"


class Found(msgspec.Struct, frozen=True):
    """A file that a ref names. `path` lies below the bundle's root as authored."""

    bundle: Bundle
    type: str
    path: str

    @property
    def relative(self) -> str:
        return os.path.relpath(self.path, os.path.join(self.bundle.root, self.type))


def resolve(bundles: tuple[Bundle, ...], ref: Ref) -> Found | None:
    """The first file in order of the bundles that a ref names, or None.

    A file whose real path lies outside its bundle raises NotFound, code PATH_ESCAPE_VIOLATION.
    """
    for bundle in bundles:
        if ref.bundle in (None, bundle.name):
            for suffix in _suffixes(ref):
                path = os.path.join(bundle.root, ref.type, *(ref.name + suffix).split("/"))
                if _is_asset(ref.type, path) and _is_file(path):
                    _refuse_escape(bundle, ref, path)
                    return Found(bundle, ref.type, path)
    return None


def canonical_ref(found: Found, bundles: tuple[Bundle, ...]) -> str:
    """`bundle//type/name`, without the suffix where that names the same file; scripts keep it."""
    full = Ref(found.type, found.relative.replace(os.sep, "/"), found.bundle.name)
    if found.type == "scripts":
        return str(full)
    for suffix in _suffixes(full):
        if suffix and full.name.endswith(suffix):
            short = Ref(full.type, full.name.removesuffix(suffix), full.bundle)
            again = resolve(bundles, short) if short.name else None
            if again == found:
                return str(short)
    return str(full)


def read_asset(found: Found, limit: int = MAX_BYTES) -> bytes:
    """The bytes of a file; SourceError when it cannot be read or has more than `limit`."""
    try:
        with open(found.path, "rb") as file:
            data = file.read(limit + 1)
    except OSError as error:
        raise SourceError(f"{found.path} cannot be read: {error.strerror}") from None
    if len(data) > limit:
        raise SourceError(f"{found.path} is larger than {limit} bytes")
    return data


def list_assets(bundles: tuple[Bundle, ...], kind: str) -> Iterator[Found]:
    """The assets of a type in all bundles, by name; sensitive ones and folders with a dot are left out."""
    for bundle in bundles:
        base = os.path.join(bundle.root, kind)
        for folder, folders, files in os.walk(base):
            if SENSITIVE in files:
                folders.clear()
                continue
            folders[:] = sorted(name for name in folders if not name.startswith("."))
            for name in sorted(files):
                path = os.path.join(folder, name)
                hidden = name.startswith(".") or name + SENSITIVE in files
                if not hidden and _is_asset(kind, path) and contained(bundle.root, path):
                    yield Found(bundle, kind, path)


def contained(root: str, path: str) -> bool:
    """Whether a path, symlinks resolved, lies below a folder, symlinks resolved; by components."""
    real = os.path.realpath(root)
    return os.path.commonpath([real, os.path.realpath(path)]) == real


def bundle_name(root: str) -> str:
    """A bundle's name where the configuration gives none: that of its folder."""
    return re.sub(r"[^A-Za-z0-9_-]+", "-", os.path.basename(os.path.normpath(root))).strip("-_") or "bundle"


def _suffixes(ref: Ref) -> tuple[str, ...]:
    return SUFFIXES.get(ref.type, ("", ".md", ".yml"))


def _is_asset(kind: str, path: str) -> bool:
    if path.endswith(SENSITIVE):
        return False
    if kind in ("workflows", "tasks"):
        return path.endswith(tuple(suffix for suffix in SUFFIXES[kind] if suffix))
    return True


def _is_file(path: str) -> bool:
    try:
        return stat.S_ISREG(os.stat(path).st_mode)
    except (OSError, ValueError):
        return False


def _refuse_escape(bundle: Bundle, ref: Ref, path: str) -> None:
    if not contained(bundle.root, path):
        raise NotFound(
            f"{ref} resolves to a file outside its bundle {bundle.name}.",
            code="PATH_ESCAPE_VIOLATION",
            hint="Replace the symlink by a file inside the bundle.",
        )
