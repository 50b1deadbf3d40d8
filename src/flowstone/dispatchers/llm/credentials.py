"""The keys of engines, read where a unit runs and nowhere else."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping

from flowstone.plan.units import Credential, EngineSpec, LlmSpec

KEY_BYTES = 64 * 1024


class MissingKey(Exception):
    """A key that its engine requires is not there, or is none; the message names its place."""


def key_of(credential: Credential, env: Mapping[str, str]) -> str | None:
    """The key; None where none is needed and none is there."""
    for name in credential.names:
        key = env.get(name, "").strip()
        if key:
            return _sound(key, name)
    if credential.file is not None:
        return _sound(_read(credential.file, env), credential.file)
    if credential.required:
        names = " or ".join(credential.names)
        raise MissingKey(f"Required engine credential {names} is not set.")
    return None


def keys_of(specs: Iterable[EngineSpec], env: Mapping[str, str]) -> list[str]:
    """Every key that some spec would send, so that none is ever shown; those that are missing are left out."""
    found = []
    for spec in specs:
        if isinstance(spec, LlmSpec):
            try:
                key = key_of(spec.credential, env)
            except MissingKey:
                continue
            found += [key] if key is not None else []
    return found


def _read(path: str, env: Mapping[str, str]) -> str:
    full = path if not path.startswith("~/") else env.get("HOME", "~") + path[1:]
    try:
        with open(full, encoding="utf-8") as file:
            key = file.read(KEY_BYTES).strip()
    except (OSError, UnicodeDecodeError) as error:
        cause = error.strerror if isinstance(error, OSError) else "it is no text"
        raise MissingKey(f"The engine's key file {os.path.basename(path)} cannot be read: {cause}.") from None
    if not key:
        raise MissingKey(f"The engine's key file {os.path.basename(path)} is empty.")
    return key


def _sound(key: str, place: str) -> str:
    """A key that can stand in a header."""
    if not key.isascii() or not key.isprintable():
        raise MissingKey(f"The engine's key in {os.path.basename(place)} holds characters that no header may hold.")
    return key
