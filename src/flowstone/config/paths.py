"""Where configuration, data, state, cache and assets lie: environment variables to absolute paths.

The folders are those of akm, so that an installed akm and flowstone share configuration and
assets; what flowstone keeps of its own lies in folders named `flowstone` below them.
"""

from __future__ import annotations

import os
from collections.abc import Mapping

import msgspec


class Paths(msgspec.Struct, frozen=True):
    """Absolute folders. None of them need exist. `bundle` is None unless AKM_BUNDLE_DIR is set."""

    home: str
    config: str
    data: str
    state: str
    cache: str
    bundle: str | None = None

    @property
    def config_file(self) -> str:
        return os.path.join(self.config, "config.json")

    @property
    def models_file(self) -> str:
        """The user's model aliases, laid over the packaged ones."""
        return os.path.join(self.config, "models.json")

    @property
    def database(self) -> str:
        """Our own state database, apart from every file of an installed akm."""
        return os.path.join(self.data, "flowstone", "state.db")

    @property
    def crashes(self) -> str:
        """The folder that keeps the tracebacks of unexpected errors."""
        return os.path.join(self.state, "flowstone", "crashes")

    @property
    def default_bundle(self) -> str:
        """The asset root of a user who has configured none."""
        return os.path.join(self.home, "akm")


def locate(variables: Mapping[str, str]) -> Paths:
    """Read the folders from AKM_*_DIR, else from the XDG variables, else below the home folder.

    An XDG variable that is not absolute is ignored, as its specification asks.
    """
    home = variables.get("HOME") or os.path.expanduser("~")
    bundle = variables.get("AKM_BUNDLE_DIR")

    def folder(name: str, base: str, fallback: str) -> str:
        own = variables.get(f"AKM_{name}_DIR")
        if own:
            return os.path.abspath(expand(own, home))
        shared = variables.get(base, "")
        if not os.path.isabs(shared):
            shared = os.path.join(home, fallback)
        return os.path.join(os.path.abspath(shared), "akm")

    return Paths(
        home=home,
        config=folder("CONFIG", "XDG_CONFIG_HOME", ".config"),
        data=folder("DATA", "XDG_DATA_HOME", ".local/share"),
        state=folder("STATE", "XDG_STATE_HOME", ".local/state"),
        cache=folder("CACHE", "XDG_CACHE_HOME", ".cache"),
        bundle=os.path.abspath(expand(bundle, home)) if bundle else None,
    )


def expand(path: str, home: str) -> str:
    """`path` with a leading `~` or `~/` replaced by the home folder."""
    if path == "~" or path.startswith("~/"):
        return home + path[1:]
    return path
