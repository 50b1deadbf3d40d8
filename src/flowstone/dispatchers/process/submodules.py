"""Submodules that a unit has checked out in its worktree: their git folders lie with the worktree's own.

A worktree that is kept without its registration takes them along, so that each submodule in it stays
a repository of its own. Everything here blocks.
"""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Iterator

from flowstone.dispatchers.process.git import Git, GitError

FOLDER = "modules"


def hold_commits(git: Git, admin: str) -> bool:
    """Whether a submodule has commits that would be lost with the worktree's folder in the repository."""
    return any(_own_commits(git, folder) for folder in _git_folders(admin))


def take_along(git: Git, admin: str, path: str) -> None:
    """Move the git folder of each submodule to where it was checked out below `path`, the inner ones first."""
    for folder in _git_folders(admin):
        place = _checked_out(git, folder)
        link = None if place is None else os.path.join(place, ".git")
        if link is None or not _is_below(link, path) or not os.path.isfile(link) or os.path.islink(link):
            continue
        os.unlink(link)
        shutil.move(folder, link)
        with contextlib.suppress(GitError):
            git(path, "config", "--file", os.path.join(link, "config"), "--unset", "core.worktree")


def _git_folders(admin: str) -> Iterator[str]:
    for folder, _, files in os.walk(os.path.join(admin, FOLDER), topdown=False):
        if "HEAD" in files and os.path.isdir(os.path.join(folder, "objects")):
            yield folder


def _checked_out(git: Git, folder: str) -> str | None:
    """Where a submodule was checked out; None where its git folder does not say."""
    try:
        place = git(folder, "config", "--file", os.path.join(folder, "config"), "core.worktree").strip()
    except GitError:
        return None
    return os.path.realpath(os.path.join(folder, place))


def _own_commits(git: Git, folder: str) -> bool:
    """A git folder that cannot be asked is taken to have some."""
    try:
        return bool(git(folder, "--git-dir=.", "rev-list", "--max-count=1", "HEAD", "--branches", "--not", "--remotes"))
    except GitError:
        return True


def _is_below(place: str, path: str) -> bool:
    return os.path.commonpath([os.path.realpath(path), os.path.realpath(place)]) == os.path.realpath(path)
