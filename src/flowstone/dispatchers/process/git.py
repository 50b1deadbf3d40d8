"""Runs git for worktrees: one operation at a time in a repository, each with a bound.

Everything here blocks, so it is called in a thread.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import msgspec

GIT_S = 30.0
"""Seconds that one git command may take (akm facts 25)."""
WAIT_S = 300.0
"""Seconds that an operation waits for those of other processes in the same repository."""
LOCK = "worktrees.lock"
_REDIRECTS = (
    "GIT_DIR",
    "GIT_WORK_TREE",
    "GIT_INDEX_FILE",
    "GIT_COMMON_DIR",
    "GIT_OBJECT_DIRECTORY",
    "GIT_ALTERNATE_OBJECT_DIRECTORIES",
    "GIT_NAMESPACE",
    "GIT_PREFIX",
)
"""Set where git itself starts us, in a hook: they would lead every command to that repository."""


class GitError(Exception):
    """A git command failed; its text is what git said, on one line."""


class Git(msgspec.Struct, frozen=True):
    """Git with the variables of one environment."""

    env: Mapping[str, str]

    def __call__(self, folder: str, *arguments: str) -> str:
        """What a git command prints in a folder; GitError when it fails, hangs or cannot be started."""
        argv = ("git", "-C", folder, "-c", "core.fsmonitor=false", *arguments)
        try:
            process = subprocess.Popen(
                argv,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                env=self._variables(),
                start_new_session=True,
            )
        except OSError as error:
            raise GitError(f"git cannot be started ({error.strerror})") from None
        try:
            out, err = process.communicate(timeout=GIT_S)
        except subprocess.TimeoutExpired:
            _kill(process)
            raise GitError(f"git {arguments[0]} took longer than {GIT_S:.0f} seconds and was ended") from None
        if process.returncode != 0:
            said = os.fsdecode(err).strip().splitlines()
            raise GitError(said[-1] if said else f"git {arguments[0]} exited {process.returncode}")
        return os.fsdecode(out)

    def _variables(self) -> dict[str, str]:
        kept = {name: value for name, value in self.env.items() if name not in _REDIRECTS}
        return kept | {"LC_ALL": "C", "GIT_TERMINAL_PROMPT": "0", "GIT_OPTIONAL_LOCKS": "0"}


@contextmanager
def alone(common: str) -> Iterator[None]:
    """Hold the repository whose common git folder is given, against threads and other processes."""
    import fcntl

    try:
        descriptor = os.open(os.path.join(common, LOCK), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise GitError(f"{common} cannot be locked ({error.strerror})") from None
    try:
        deadline = time.monotonic() + WAIT_S
        while True:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() > deadline:
                    raise GitError(f"another process has held {common} for {WAIT_S:.0f} seconds") from None
                time.sleep(0.02)
        yield
    finally:
        os.close(descriptor)


def _kill(process: subprocess.Popen[bytes]) -> None:
    """End a command with all that it started."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.communicate()
