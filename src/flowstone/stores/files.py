"""What the stores ask of the file system: private folders, atomic files, and its errors in words."""

from __future__ import annotations

import errno
import os

from flowstone.errors import StoreError, UsageError

NAME_BYTES = 200
"""Bytes of a run id: it must fit a file name with a suffix behind it."""


def check_run_id(run_id: str) -> str:
    """`run_id` itself if it can name a file and nothing else; UsageError if not."""
    try:
        size = len(os.fsencode(run_id))
    except UnicodeEncodeError:
        size = 0
    if not 0 < size <= NAME_BYTES or run_id.startswith(".") or any(c in "/\\" or c < " " for c in run_id):
        raise UsageError(
            f"the run id {run_id[:80]!r} cannot name a file",
            hint="a run id has 1 to 200 bytes, no path separator, no control character and no dot in front",
        )
    return run_id


def make_private_folder(path: str) -> None:
    """Make a folder, and what leads to it, that only its owner can enter."""
    try:
        os.makedirs(path, mode=0o700, exist_ok=True)
    except OSError as error:
        raise storage_error(error, path) from error


def write_durably(path: str, data: bytes) -> None:
    """Put `data` at `path` so that a crash leaves all of it or nothing; mode 0600."""
    folder = os.path.dirname(path)
    temporary = os.path.join(folder, f".{os.path.basename(path)[:64]}.{os.urandom(6).hex()}")
    try:
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        try:
            try:
                write_all(descriptor, data)
                os.fsync(descriptor)
            finally:
                os.close(descriptor)
            os.rename(temporary, path)
        except OSError:
            os.unlink(temporary)
            raise
        sync_folder(folder)
    except OSError as error:
        raise storage_error(error, path) from error


def write_all(descriptor: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]


def sync_folder(path: str) -> None:
    """Make the names in a folder durable."""
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def storage_error(error: OSError, path: str) -> StoreError:
    """The StoreError that says what became of `path`, why, and what to do."""
    cause = error.strerror or str(error)
    return StoreError(f"{path}: {cause}", hint=_HINTS.get(error.errno or 0))


_HINTS = {
    errno.ENOSPC: "the disk is full: free some space, then resume the run",
    errno.EDQUOT: "the quota is used up: free some space, then resume the run",
    errno.EFBIG: "the file may not grow further: raise the limit, then resume the run",
    errno.EROFS: "the file system is read-only: keep the state in a folder that can be written",
    errno.EACCES: "keep the state in a folder that you may write",
    errno.EPERM: "keep the state in a folder that you may write",
    errno.ENOTDIR: "a file stands where a folder is needed: move it away",
    errno.EEXIST: "a file stands where a folder is needed: move it away",
}
