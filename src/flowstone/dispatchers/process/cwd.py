"""The working directory of a command, decided right before its spawn."""

from __future__ import annotations

import os

from flowstone.dispatchers.process.failures import CannotStart
from flowstone.plan.units import CwdRule
from flowstone.ports.dispatcher import Workspace
from flowstone.run.outcome import Reason


def working_directory(cwd: str | None, rule: CwdRule, workspace: Workspace) -> str:
    """The absolute folder to work in; whether it exists shows at the spawn.

    A contained one that leads out of the workspace's base, by its spelling or through a symlink,
    raises CannotStart with exec_cwd_escape.
    """
    if cwd is not None and not _spellable(cwd):
        text = "the working directory holds a NUL character or half of a character (a lone surrogate)"
        raise CannotStart(Reason.SPAWN_FAILED, text)
    if rule is CwdRule.CONTAINED:
        return workspace.base if cwd is None else _contained(cwd, workspace.base)
    if cwd is None:
        return workspace.run_folder or workspace.cwd
    return os.path.join(workspace.cwd, cwd)


def _spellable(cwd: str) -> bool:
    try:
        return b"\0" not in cwd.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return False


def _contained(cwd: str, base: str) -> str:
    segments = cwd.replace("\\", "/").split("/")
    if os.path.isabs(cwd) or cwd[:1] in ("~", "\\") or ".." in segments or cwd[1:2] == ":":
        raise _escape(cwd, f"write a folder below {base}, without a leading / or ~ and without ..")
    real_base = os.path.realpath(base)
    real = os.path.realpath(os.path.join(real_base, cwd))
    if os.path.commonpath((real_base, real)) != real_base:
        raise _escape(cwd, f"it resolves to {real}")
    return real


def _escape(cwd: str, why: str) -> CannotStart:
    text = f'the working directory "{cwd}" leads out of the folder that contains the run: {why}'
    return CannotStart(Reason.EXEC_CWD_ESCAPE, text)
