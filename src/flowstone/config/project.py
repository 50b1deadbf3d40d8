"""The asset roots that a project brings along: `bundles` of its `.akm/config.json`, and nothing else of it.

A project's own file grants nothing: its bundles come behind those of the user, and lie inside it.
"""

from __future__ import annotations

import os

import msgspec

from flowstone.assets.bundles import Bundle, contained
from flowstone.assets.refs import is_bundle_name
from flowstone.config.file import read_config
from flowstone.errors import ConfigError

FILE = os.path.join(".akm", "config.json")


class Project(msgspec.Struct, frozen=True):
    """The nearest folder upwards that has such a file; `bundles` in the order of the file."""

    folder: str
    bundles: tuple[Bundle, ...] = ()

    @property
    def config_file(self) -> str:
        return os.path.join(self.folder, FILE)


def find_project(cwd: str) -> Project | None:
    """The project of a folder; ConfigError for a file that cannot be used, None where there is none."""
    folder = os.path.abspath(cwd)
    trusted = {0, os.geteuid(), _owner(folder)}
    while not _is_trusted(os.path.join(folder, FILE), trusted):
        parent = os.path.dirname(folder)
        if parent == folder:
            return None
        folder = parent
    return Project(folder, _bundles(folder))


def _is_trusted(path: str, owners: set[int | None]) -> bool:
    """Whether there is such a file, and not of a stranger: anybody can put one above a shared folder."""
    return os.path.isfile(path) and _owner(path) in owners


def _owner(path: str) -> int | None:
    try:
        return os.stat(path).st_uid
    except OSError:
        return None


def _bundles(folder: str) -> tuple[Bundle, ...]:
    path = os.path.join(folder, FILE)
    entries = (read_config(path) if os.path.getsize(path) else {}).get("bundles") or {}
    if not isinstance(entries, dict):
        raise ConfigError(f"{path}: bundles must be an object.")
    return tuple(_bundle(folder, path, name, entry) for name, entry in entries.items())


def _bundle(folder: str, path: str, name: str, entry: object) -> Bundle:
    root = entry.get("path") if isinstance(entry, dict) else None
    if not is_bundle_name(name) or not isinstance(root, str) or not root.strip():
        raise ConfigError(f'{path}: bundles.{name} must be a bundle name with a "path".')
    if os.path.isabs(root) or not contained(folder, os.path.join(folder, root)):
        raise ConfigError(
            f"{path}: bundles.{name}.path leads outside the project.",
            code="PATH_ESCAPE_VIOLATION",
            hint="Write a path inside the project; a bundle from elsewhere goes into your own configuration.",
        )
    return Bundle(name, os.path.normpath(os.path.join(folder, root)), "project")
