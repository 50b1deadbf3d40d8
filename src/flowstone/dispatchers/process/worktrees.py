"""The worktrees of one drive: makes one for an attempt, off the event loop, and ends it whatever happens."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from typing import Any, TypeVar

import msgspec

from flowstone.dispatchers.process.failures import CannotStart
from flowstone.dispatchers.process.git import Git
from flowstone.dispatchers.process.worktree import (
    CannotIsolate,
    Worktree,
    add,
    attempt_name,
    claimed,
    drop_if_empty,
    finish,
    repository_at,
    sweep,
    tree_root,
)
from flowstone.ports.dispatcher import Dispatch, Workspace
from flowstone.run.outcome import Outcome, Reason, failed

T = TypeVar("T")


class Stopped(asyncio.CancelledError):
    """The cancellation of work in a worktree; `notes` tell what became of the tree."""

    def __init__(self, notes: tuple[str, ...]) -> None:
        super().__init__()
        self.notes = notes

    @property
    def outcome(self) -> Outcome:
        """The attempt's, for a dispatcher that answers for what is ended early."""
        aborted = failed(Reason.ABORTED, "the run was stopped")
        return msgspec.structs.replace(aborted, warnings=self.notes)


class Worktrees:
    """Gives attempts that ask for isolation a worktree of the workspace's repository."""

    def __init__(self, workspace: Workspace, env: Mapping[str, str]) -> None:
        self._workspace = workspace
        self._git = Git(env)
        self._temporary = env.get("TMPDIR") or "/tmp"
        self._turn = asyncio.Lock()
        self._held: dict[str, int] = {}
        self._live: set[str] = set()

    async def within(self, dispatch: Dispatch, work: Callable[[Workspace], Awaitable[Outcome]]) -> Outcome:
        """Do an attempt's work in a worktree of its own; CannotStart when none can be made.

        A cancellation never leaves a worktree half made: it is raised, as Stopped, when the tree is settled.
        """
        tree, cancelled = await _to_its_end(self._open(dispatch))
        outcome: Outcome | None = None
        try:
            if not cancelled:
                place = os.path.realpath(tree.path)
                outcome = await work(msgspec.structs.replace(self._workspace, base=place, cwd=place))
        except asyncio.CancelledError:
            cancelled = True
        finally:
            notes, again = await _to_its_end(self._close(tree, dispatch.unit))
            notes = (*tree.notes, *notes)
        if outcome is None or cancelled or again:
            raise Stopped(notes)
        return msgspec.structs.replace(outcome, warnings=(*outcome.warnings, *notes))

    def close(self) -> None:
        """Let the folders of the runs go."""
        for folder, descriptor in self._held.items():
            drop_if_empty(folder)
            os.close(descriptor)
        self._held.clear()

    async def _open(self, dispatch: Dispatch) -> Worktree:
        async with self._turn:
            try:
                tree = await asyncio.to_thread(self._made, dispatch)
            except CannotIsolate as error:
                raise CannotStart(Reason.WORKTREE_FAILED, str(error), of_step=error.of_step) from None
            self._live.add(tree.path)
            return tree

    async def _close(self, tree: Worktree, unit: str) -> tuple[str, ...]:
        async with self._turn:
            self._live.discard(tree.path)
            return await asyncio.to_thread(finish, self._git, tree, unit)

    def _made(self, dispatch: Dispatch) -> Worktree:
        """The first one of a run clears what earlier drives have left."""
        repository = repository_at(self._git, self._workspace.base)
        root = tree_root(self._temporary)
        folder = os.path.join(root, dispatch.run)
        notes: tuple[str, ...] = ()
        if folder not in self._held:
            self._held[folder] = claimed(folder)
            notes = sweep(self._git, root, dispatch.run, repository.common)
        path = self._free(os.path.join(folder, attempt_name(dispatch.unit, dispatch.number)))
        tree = add(self._git, repository, path)
        return msgspec.structs.replace(tree, notes=(*notes, *tree.notes))

    def _free(self, path: str) -> str:
        """Two ids that differ only in replaced characters must not share a folder."""
        free, number = path, 1
        while free in self._live:
            number += 1
            free = f"{path}-{number}"
        return free


async def _to_its_end(work: Coroutine[Any, Any, T]) -> tuple[T, bool]:
    """What a piece of work gives, and whether this task was cancelled meanwhile."""
    task = asyncio.ensure_future(work)
    cancelled = False
    while not task.done():
        try:
            await asyncio.wait({task})
        except asyncio.CancelledError:
            cancelled = True
    return task.result(), cancelled
