"""Env assets and secrets as files that their owner alone may read: listed, written and removed.

What is listed are names, never a value.
"""

from __future__ import annotations

import os
import re
import secrets as chance

import msgspec

from flowstone.assets.bundles import (
    MAX_BYTES,
    SENSITIVE,
    Bundle,
    Found,
    canonical_ref,
    contained,
    list_assets,
    read_asset,
    resolve,
)
from flowstone.assets.catalog import ENV_BYTES
from flowstone.assets.dangerous import dangerous
from flowstone.assets.dotenv import entries, parse_dotenv
from flowstone.assets.refs import TYPES, Ref, parse_ref
from flowstone.errors import FlowstoneError, InputError, NotFound, SourceError, UsageError

ENV, SECRETS = "env", "secrets"
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*(/[A-Za-z0-9_][A-Za-z0-9_.-]*)*")


class Entry(msgspec.Struct, frozen=True):
    """A file of the vault: `keys` are the names in an env asset, `problem` says why there are none."""

    ref: str
    path: str
    keys: tuple[str, ...] = ()
    problem: str | None = None


class Vault:
    """The env assets and secrets of the bundles; new ones go to the first bundle."""

    def __init__(self, bundles: tuple[Bundle, ...]) -> None:
        self._bundles = bundles

    def entries(self, kind: str) -> list[Entry]:
        """All but the sensitive ones, by bundle and name."""
        return [self._entry(found) for found in list_assets(self._bundles, kind)]

    def path(self, kind: str, name: str) -> str:
        return os.path.abspath(self._find(kind, name).path)

    def write(self, kind: str, name: str, data: bytes, *, replace: bool) -> Entry:
        """Write a file at once, mode 0600; without `replace` an existing one is a UsageError."""
        ref = _new_ref(kind, name)
        bundle = self._owner(ref)
        path = os.path.join(bundle.root, kind, *ref.name.split("/")) + (".env" if kind == ENV else "")
        _check(kind, data, path)
        if not contained(bundle.root, path):
            raise UsageError(f"{path} lies outside its bundle.", code="PATH_ESCAPE_VIOLATION")
        if os.path.lexists(path) and not replace:
            raise UsageError(
                f"{ref} already exists. Re-run with --force to replace it.", code="RESOURCE_ALREADY_EXISTS"
            )
        _write(path, data)
        return self._entry(Found(bundle, kind, path))

    def remove(self, kind: str, name: str) -> Entry:
        """Remove a file with its marker; one of another bundle only by a ref that names the bundle."""
        ref = _ref(kind, name)
        found = self._find(kind, str(ref), (self._owner(ref),))
        entry = Entry(canonical_ref(found, self._bundles), os.path.abspath(found.path))
        try:
            os.unlink(found.path)
            if os.path.lexists(found.path + SENSITIVE):
                os.unlink(found.path + SENSITIVE)
        except OSError as error:
            raise UsageError(f"{found.path} cannot be removed: {error.strerror}") from None
        return entry

    def secret(self, name: str) -> str:
        """The whole content of a secret."""
        found = self._find(SECRETS, name)
        return _text(read_asset(found), found.path)

    def dangerous_keys(self, name: str) -> tuple[str, ...]:
        """The keys of an env asset that make programs run other code."""
        found = self._find(ENV, name)
        return dangerous(parse_dotenv(read_asset(found, ENV_BYTES), found.path))

    def suspects(self) -> list[tuple[Entry, tuple[tuple[str, int], ...]]]:
        """Every env asset that is listed, with its keys of that kind and their lines."""
        found = []
        for asset in list_assets(self._bundles, ENV):
            entry = self._entry(asset)
            keys: tuple[tuple[str, int], ...] = ()
            if entry.problem is None:
                lines = entries(read_asset(asset, ENV_BYTES), entry.path)
                keys = tuple((name, line) for name, _, line in lines if dangerous((name,)))
            found.append((entry, keys))
        return found

    def ref(self, kind: str, name: str) -> str:
        """A name as a ref; a ref stays as it is."""
        return str(_ref(kind, name))

    def _entry(self, found: Found) -> Entry:
        ref, path = canonical_ref(found, self._bundles), os.path.abspath(found.path)
        if found.type != ENV:
            return Entry(ref, path)
        try:
            return Entry(ref, path, tuple(sorted(parse_dotenv(read_asset(found, ENV_BYTES), path))))
        except FlowstoneError as error:
            return Entry(ref, path, problem=error.message)

    def _find(self, kind: str, name: str, bundles: tuple[Bundle, ...] | None = None) -> Found:
        ref = _ref(kind, name)
        found = resolve(self._bundles if bundles is None else bundles, ref)
        if found is None:
            what = "Env" if kind == ENV else "Secret"
            verb = "env" if kind == ENV else "secret"
            raise NotFound(f"{what} not found: {ref}", hint=f"`akm {verb} list` names those that there are.")
        return found

    def _owner(self, ref: Ref) -> Bundle:
        for bundle in self._bundles:
            if ref.bundle in (None, bundle.name):
                return bundle
        raise NotFound(f'There is no bundle "{ref.bundle}".')


def _ref(kind: str, name: str) -> Ref:
    """A ref of that kind from a ref or from a bare name."""
    first = name.rpartition("//")[2].partition("/")[0]
    bare = "//" not in name and (first not in TYPES or "/" not in name)
    ref = parse_ref(f"{kind}/{name}" if bare else name)
    if ref.type != kind:
        raise InputError(f"Expected a ref {kind}/<name>; got {name!r}.")
    return ref


def _new_ref(kind: str, name: str) -> Ref:
    ref = _ref(kind, name)
    if kind == ENV:
        ref = msgspec.structs.replace(ref, name=ref.name.removesuffix(".env"))
    if not _NAME.fullmatch(ref.name) or ref.name.endswith(SENSITIVE):
        raise InputError(
            f'The name "{ref.name}" must consist of letters, digits, dots, dashes and underscores, in parts'
            " divided by slashes that begin with a letter, a digit or an underscore."
        )
    return ref


def _check(kind: str, data: bytes, path: str) -> None:
    """What could not be read later is not written."""
    if kind == ENV:
        if len(data) > ENV_BYTES:
            raise InputError(f"An env file has at most {ENV_BYTES} bytes; this one has {len(data)}.")
        parse_dotenv(data, path)
        return
    if len(data) > MAX_BYTES:
        raise InputError(f"A secret has at most {MAX_BYTES} bytes; this one has {len(data)}.")
    _text(data, path)


def _text(data: bytes, path: str) -> str:
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        raise SourceError(f"{path}: a secret must be UTF-8 text") from None
    if "\0" in text:
        raise SourceError(f"{path}: a secret must not hold a NUL character")
    return text


def _write(path: str, data: bytes) -> None:
    """Replace a file at once by one that only its owner may read."""
    temporary = os.path.join(os.path.dirname(path), f".{chance.token_hex(8)}.tmp")
    try:
        _make_folders(os.path.dirname(path))
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        with open(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except OSError as error:
        if os.path.exists(temporary):
            os.unlink(temporary)
        raise UsageError(f"{path} cannot be written: {error.strerror}") from None


def _make_folders(folder: str) -> None:
    """Folders that are missing, each for its owner alone."""
    missing = []
    while not os.path.isdir(folder):
        missing.append(folder)
        folder = os.path.dirname(folder)
    for path in reversed(missing):
        os.mkdir(path, 0o700)
