"""Worktree isolation: a detached worktree of HEAD for one attempt, and what becomes of it afterwards.

A clean tree is removed. A changed one stays as a folder, and only its registration in the
repository goes, so that no run leaves anything in `git worktree list`; where commits would be lost
with that, the registration stays too. Nothing is ever pruned: foreign worktrees are not ours.
Everything here blocks; `worktrees` calls it in threads.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import shlex
import shutil
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager

import msgspec

from flowstone.dispatchers.process.git import Git, GitError, alone
from flowstone.dispatchers.process.submodules import hold_commits, take_along

FOLDER = "akm-worktrees"
RETAINED = ".retained-"
LONGEST_NAME = 120
OLD_S = 7 * 24 * 3600
CLAIMS = 100
CLAIM_S = 0.1


class Repository(msgspec.Struct, frozen=True):
    """A repository as seen from the folder of a run: `common` is its git folder, `head` the commit."""

    folder: str
    common: str
    head: str


class Worktree(msgspec.Struct, frozen=True):
    """One attempt's own tree. `notes` tell of leftovers that were found in its place."""

    repository: Repository
    path: str
    notes: tuple[str, ...] = ()


class CannotIsolate(Exception):
    """No worktree can be made; the text says why and what to do. `of_step`: whatever the unit."""

    def __init__(self, text: str, *, of_step: bool = False) -> None:
        super().__init__(text)
        self.of_step = of_step


def repository_at(git: Git, folder: str) -> Repository:
    """The repository that a folder lies in; CannotIsolate where no worktree can come from it."""
    try:
        answer = git(folder, "rev-parse", "--is-bare-repository", "--is-inside-work-tree", "--git-common-dir")
    except GitError as error:
        raise _refusal(folder, f"is not a git repository ({error})") from None
    bare, inside, common = answer.splitlines()[:3]
    if bare == "true":
        raise _refusal(folder, "is a bare git repository, which has no working tree")
    if inside != "true":
        raise _refusal(folder, "lies in the git folder of a repository, not in its working tree")
    try:
        head = git(folder, "rev-parse", "--verify", "--quiet", "HEAD^{commit}").strip()
    except GitError:
        raise _refusal(folder, "is a git repository without a commit: make a first one (git commit)") from None
    return Repository(folder, os.path.realpath(os.path.join(folder, common)), head)


def tree_root(temporary: str) -> str:
    """The folder of all worktrees, made where it is missing; one of somebody else is not used."""
    root = os.path.join(os.path.realpath(temporary), FOLDER)
    try:
        os.makedirs(root, mode=0o700, exist_ok=True)
        found = os.lstat(root)
    except OSError as error:
        raise CannotIsolate(f"cannot use isolation: worktree: {root} cannot be made ({error.strerror})") from None
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid():
        text = f"cannot use isolation: worktree: {root} belongs to somebody else: set TMPDIR to a folder of your own"
        raise CannotIsolate(text)
    return root


def attempt_name(unit: str, number: int) -> str:
    """The name of an attempt's folder: its id, with every other character as a dash."""
    attempt = unit if number == 0 else f"{unit}~r{number}"
    name = re.sub(r"[^A-Za-z0-9._-]", "-", attempt)
    if len(name) > LONGEST_NAME or name.startswith("."):
        import hashlib

        digest = hashlib.sha256(attempt.encode("utf-8", "surrogateescape")).hexdigest()[:16]
        name = f"{name[:LONGEST_NAME].lstrip('.')}-{digest}"
    return name


def add(git: Git, repository: Repository, path: str) -> Worktree:
    """Make the worktree; what an earlier drive left in its place gives way."""
    with _refusing(repository.folder):
        os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
        notes = clear(git, path)
        with alone(repository.common):
            try:
                git(repository.folder, "worktree", "add", "--detach", "--quiet", path, repository.head)
            except GitError:
                # A hook of the repository may refuse after git has made and registered the tree.
                with contextlib.suppress(GitError):
                    _remove(git, path)
                raise
    return Worktree(repository, path, notes)


def finish(git: Git, tree: Worktree, unit: str) -> tuple[str, ...]:
    """Remove a worktree without changes, keep one with changes; returns what a person should know."""
    path, head = tree.path, tree.repository.head
    try:
        with alone(tree.repository.common):
            if not os.path.lexists(path):
                return _forgotten(path, tree.repository)
            changes = _changes(git, path, head)
            if changes.clean:
                _remove(git, path)
                return ()
            if not changes.commits:
                _unregister(git, path)
    except (GitError, OSError) as error:
        return (f'unit "{unit}": its worktree {path} is kept, because it cannot be cleaned up: {error}',)
    if changes.commits:
        return (f'unit "{unit}": its worktree {path} is kept: it has commits that no branch holds',)
    see = shlex.join(["git", "-C", tree.repository.folder, f"--work-tree={path}", "status"])
    return (f'unit "{unit}": its worktree {path} is kept, because the unit changed files in it (see them: {see})',)


def clear(git: Git, path: str) -> tuple[str, ...]:
    """Make room at a path where a drive that was killed has left a worktree; nothing changed is lost."""
    if not os.path.lexists(path):
        return ()
    admin = _admin(path)
    if admin is None:
        return (_retain(path),)
    with alone(_common_of(admin)):
        try:
            changes = _changes(git, path, _started_at(admin))
        except GitError:
            return (_retain(path),)
        if changes.clean:
            _remove(git, path)
            return (f"{path}, left by a run that was killed, had no changes and was removed",)
        if changes.commits:
            take_along(git, admin, path)
            return (_retain(path, admin),)
        _unregister(git, path)
        return (_retain(path),)


def claim(folder: str) -> int | None:
    """Hold a run's folder for as long as its drive lives: a descriptor, or None when another one does."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if os.fstat(descriptor).st_nlink > 0:  # else it was removed in between
            return descriptor
    except BlockingIOError:
        pass
    os.close(descriptor)
    return None


def claimed(folder: str) -> int:
    """Make and hold the folder of this run; whoever sweeps it meanwhile is waited for."""
    for _ in range(CLAIMS):
        with contextlib.suppress(FileNotFoundError):
            os.makedirs(folder, mode=0o700, exist_ok=True)
            descriptor = claim(folder)
            if descriptor is not None:
                return descriptor
        time.sleep(CLAIM_S)
    raise CannotIsolate(f"cannot use isolation: worktree: another process works in {folder}")


def sweep(git: Git, root: str, run: str, common: str) -> tuple[str, ...]:
    """Clear what killed drives have left in a repository, and whatever is older than seven days.

    `run` is the one whose folder the caller holds; those that another living drive holds are let be.
    """
    notes: list[str] = []
    for name in _names(root):
        folder = os.path.join(root, name)
        if name == run:
            notes += _sweep_run(git, folder, common)
            continue
        try:
            descriptor = claim(folder)
        except OSError:
            continue
        if descriptor is not None:
            notes += _sweep_run(git, folder, common)
            drop_if_empty(folder)
            os.close(descriptor)
    return tuple(notes)


def kept_trees(temporary: str) -> Iterator[tuple[str, str, int]]:
    """Every folder that runs have left: the run, the path, when it changed (milliseconds)."""
    root = os.path.join(os.path.realpath(temporary), FOLDER)
    for run in _names(root):
        for name in _names(os.path.join(root, run)):
            path = os.path.join(root, run, name)
            with contextlib.suppress(OSError):
                yield run, path, int(os.lstat(path).st_mtime * 1000)


def discard_kept(path: str) -> bool:
    """Remove a folder that a run has left, with its registration; False while a drive of that run lives."""
    folder = os.path.dirname(path)
    descriptor = claim(folder)
    if descriptor is None:
        return False
    try:
        _discard(path)
        drop_if_empty(folder)
    finally:
        os.close(descriptor)
    return True


def bytes_of(path: str) -> int:
    """What the files of a folder hold."""
    size = 0
    for at, _, names in os.walk(path):
        for name in names:
            with contextlib.suppress(OSError):
                size += os.lstat(os.path.join(at, name)).st_size
    return size


def _sweep_run(git: Git, folder: str, common: str) -> Iterator[str]:
    for name in _names(folder):
        path = os.path.join(folder, name)
        try:
            if time.time() - os.lstat(path).st_mtime > OLD_S:
                _discard(path)
                yield f"{path} was removed: it is older than 7 days"
            elif _is_leftover(git, path, common):
                yield from clear(git, path)
        except (GitError, OSError) as error:
            yield f"{path}, left by an earlier run, cannot be cleared: {error}"


def _is_leftover(git: Git, path: str, common: str) -> bool:
    """A folder without registration, or with one for its commits, was kept on purpose."""
    admin = _admin(path)
    if admin is None or RETAINED in os.path.basename(path) or os.path.realpath(_common_of(admin)) != common:
        return False
    try:
        return not _changes(git, path, _started_at(admin)).commits
    except GitError:
        return True


class _Changes(msgspec.Struct, frozen=True):
    """`commits`: some that nothing but the worktree's own git folder holds."""

    files: bool
    commits: bool

    @property
    def clean(self) -> bool:
        return not self.files and not self.commits


def _changes(git: Git, path: str, head: str | None) -> _Changes:
    """Ignored files do not count; those in submodules do, whatever the user's settings say of them."""
    status = git(path, "status", "--porcelain=v2", "--untracked-files=normal", "--ignore-submodules=none")
    lines = status.splitlines()
    in_submodule = any(len(words) > 2 and words[2].startswith("SC") for words in map(str.split, lines))
    now = git(path, "rev-parse", "HEAD").strip()
    own = now != head and not git(path, "for-each-ref", "--count=1", "--contains", now).strip()
    admin = _admin(path)
    lost = in_submodule or own or (admin is not None and hold_commits(git, admin))
    return _Changes(bool(lines), lost)


def _started_at(admin: str) -> str | None:
    """The commit that a worktree was made of, from the first line of its own log."""
    try:
        with open(os.path.join(admin, "logs", "HEAD"), encoding="utf-8", errors="replace") as file:
            return file.readline().split()[1]
    except (OSError, IndexError):
        return None


def _remove(git: Git, path: str) -> None:
    """Forced twice: a submodule in it, or git being killed while it made the tree, would refuse once."""
    git(path, "worktree", "remove", "--force", "--force", path)


def _discard(path: str) -> None:
    """Remove a folder whatever it is, with its registration if there is one."""
    admin = _admin(path)
    if admin is not None:
        with alone(_common_of(admin)):
            shutil.rmtree(admin)
    if os.path.isdir(path) and not os.path.islink(path):
        shutil.rmtree(path)
    else:
        os.unlink(path)


def _unregister(git: Git, path: str) -> None:
    """Keep a folder and take its worktree out of the repository."""
    admin = _admin(path)
    if admin is not None:
        take_along(git, admin, path)
        shutil.rmtree(admin)
        os.unlink(os.path.join(path, ".git"))


def _forgotten(path: str, repository: Repository) -> tuple[str, ...]:
    """A unit has removed its own folder: only the registration is left."""
    base = os.path.join(repository.common, "worktrees")
    for name in _names(base):
        if _points_to(os.path.join(base, name), path):
            shutil.rmtree(os.path.join(base, name))
    return ()


def _retain(path: str, admin: str | None = None) -> str:
    """Move a leftover aside; a registration that stays follows it."""
    aside = f"{path}{RETAINED}{time.time_ns() // 1_000_000}"
    os.rename(path, aside)
    if admin is not None:
        with open(os.path.join(admin, "gitdir"), "w", encoding="utf-8", errors="surrogateescape") as file:
            file.write(os.path.join(aside, ".git") + "\n")
    return f"{path}, left by a run that was killed, has changes: it is kept as {aside}"


def _admin(path: str) -> str | None:
    """The repository's folder about a worktree, if both point to each other; else it is not its own."""
    try:
        with open(os.path.join(path, ".git"), encoding="utf-8", errors="surrogateescape") as file:
            text = file.read(8192)
    except OSError:
        return None
    if not text.startswith("gitdir: "):
        return None
    admin = os.path.join(path, text.removeprefix("gitdir: ").rstrip("\n"))
    inside = os.path.basename(os.path.dirname(admin)) == "worktrees"
    return admin if inside and _points_to(admin, path) else None


def _points_to(admin: str, path: str) -> bool:
    try:
        with open(os.path.join(admin, "gitdir"), encoding="utf-8", errors="surrogateescape") as file:
            target = file.read(8192).rstrip("\n")
    except OSError:
        return False
    return os.path.realpath(os.path.dirname(os.path.join(admin, target))) == os.path.realpath(path)


def _common_of(admin: str) -> str:
    return os.path.dirname(os.path.dirname(admin))


def _names(folder: str) -> list[str]:
    try:
        return sorted(os.listdir(folder))
    except OSError:
        return []


def drop_if_empty(folder: str) -> None:
    with contextlib.suppress(OSError):
        os.rmdir(folder)


def _refusal(folder: str, why: str) -> CannotIsolate:
    text = f'cannot use isolation: worktree: "{folder}" {why}'
    text = f"{text}; start the run in the working tree of a repository, or remove isolation"
    return CannotIsolate(text, of_step=True)


@contextmanager
def _refusing(folder: str) -> Iterator[None]:
    """Makes what git or the system says about a new worktree a CannotIsolate."""
    try:
        yield
    except (GitError, OSError) as error:
        text = f'cannot use isolation: worktree: "{folder}" gives no worktree: {error}'
        raise CannotIsolate(text) from None
