"""The scope of a run: from the folder in which a command works to the folder its runs belong to."""

from __future__ import annotations

import os

import msgspec

from flowstone.values import sha256_hex

MARKERS = (os.path.join(".akm", "config.json"), ".git")


class Scope(msgspec.Struct, frozen=True):
    """`path` is real and absolute; `key` is what the runs of one scope share."""

    path: str
    key: str


def run_scope(cwd: str, bundle_root: str | None = None) -> Scope:
    """The first that holds: the nearest folder upwards with `.akm/config.json`, the nearest with
    `.git`, the bundle root when `cwd` lies in it, `cwd` itself (akm facts 26).
    """
    here = os.path.realpath(cwd)
    path = _marked(here) or _inside(here, bundle_root) or here
    return Scope(path, "dir:v1:" + sha256_hex(os.fsencode(path)))


def _marked(here: str) -> str | None:
    for marker in MARKERS:
        folder = here
        while True:
            if os.path.exists(os.path.join(folder, marker)):
                return folder
            parent = os.path.dirname(folder)
            if parent == folder:
                break
            folder = parent
    return None


def _inside(here: str, root: str | None) -> str | None:
    if root is None:
        return None
    real = os.path.realpath(root)
    return real if os.path.commonpath([real, here]) == real else None
