"""Stores by name. Each is imported when it is opened: a further store is one line here."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from flowstone.errors import ConfigError

if TYPE_CHECKING:
    from flowstone.ports.store import Store


def open_store(name: str, path: str, *, readonly: bool = False) -> Store:
    """Open the store `name` at `path`: a database file (sqlite) or an `.orun` folder (directory)."""
    opener = OPENERS.get(name)
    if opener is None:
        known = ", ".join(sorted(OPENERS))
        raise ConfigError(f'there is no store "{name}"', hint=f"use one of: {known}")
    return opener(path, readonly)


def _memory(path: str, readonly: bool) -> Store:
    from flowstone.stores.memory import MemoryStore

    return MemoryStore()


def _sqlite(path: str, readonly: bool) -> Store:
    from flowstone.stores.sqlite.store import SqliteStore

    return SqliteStore.open(path, readonly=readonly)


def _directory(path: str, readonly: bool) -> Store:
    from flowstone.stores.directory.store import DirectoryStore

    return DirectoryStore.open(path, readonly=readonly)


OPENERS: dict[str, Callable[[str, bool], Store]] = {
    "memory": _memory,
    "sqlite": _sqlite,
    "directory": _directory,
}
