"""The pinned copies below a working folder: read and verified for a run, written and removed for `vendor`.

Nothing is written outside of the folder: each part of a path is entered without following a link.
The lock is the last thing that is replaced, so that a crash leaves the old pins or the new ones.
"""

from __future__ import annotations

import errno
import fcntl
import os
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cached_property

from flowstone.errors import DigestMismatch, SourceError
from flowstone.source.lockfile import LOCK_BYTES, LOCK_NAME, Lock, Pin, decode_lock
from flowstone.source.remote import Remote, at_commit
from flowstone.values import sha256_hex

WAIT_S = 120.0
"""How long to wait for another process that vendors in the same folder."""
FILE_BYTES = 4 * 1024 * 1024
_STEP_S = 0.05
_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


class Vendored:
    """The lock of a folder, read once, and the files that it pins."""

    def __init__(self, folder: str) -> None:
        self.folder = folder

    @cached_property
    def lock(self) -> Lock:
        """What is pinned; nothing where there is no lock file. SourceError for a damaged one."""
        data = self.lock_bytes()
        return Lock() if data is None else decode_lock(data, LOCK_NAME)

    @cached_property
    def _named(self) -> dict[str, Pin]:
        return self.lock.by_name()

    def lock_bytes(self) -> bytes | None:
        path = os.path.join(self.folder, LOCK_NAME)
        if not os.path.lexists(path):
            return None
        return _read(os.open(self.folder, os.O_RDONLY | os.O_CLOEXEC), LOCK_NAME, LOCK_NAME, LOCK_BYTES)

    def pin(self, remote: Remote) -> Pin | None:
        """The pin of a reference; None where the lock does not know it."""
        found = self._named.get(remote.name)
        if found is None and remote.commit is not None:
            found = self._named.get(at_commit(remote, remote.commit))
        return found

    def read(self, pin: Pin) -> bytes:
        """The pinned bytes. DigestMismatch where the file holds others, SourceError where it cannot be read."""
        folder, name = _entered(self.folder, pin.path, make=False)
        data = _read(folder, name, pin.path, FILE_BYTES)
        if (digest := sha256_hex(data)) != pin.hex:
            raise DigestMismatch(
                f"{pin.path}: it has digest sha256:{digest}, not {pin.digest} as {LOCK_NAME} demands ({pin.reference})",
                hint="Restore the file from version control, or vendor it again: flowstone vendor",
            )
        return data

    def write(self, path: str, data: bytes) -> None:
        """Put a file at a path below the folder, as a whole or not at all."""
        folder, name = _entered(self.folder, path, make=True)
        temporary = f".{name[:64]}.{os.urandom(6).hex()}"
        try:
            _written(folder, temporary, data)
            os.rename(temporary, name, src_dir_fd=folder, dst_dir_fd=folder)
            os.fsync(folder)
        except OSError as error:
            with suppress(FileNotFoundError):
                os.unlink(temporary, dir_fd=folder)
            raise _failed(path, error) from None
        finally:
            os.close(folder)

    def remove(self, path: str) -> None:
        """Remove a file below the folder, and the folders that are empty then."""
        parts = path.split("/")
        for count in range(len(parts), 1, -1):
            try:
                folder, name = _entered(self.folder, "/".join(parts[:count]), make=False)
            except SourceError:
                continue
            try:
                os.unlink(name, dir_fd=folder) if count == len(parts) else os.rmdir(name, dir_fd=folder)
            except OSError:
                if count < len(parts):
                    return
            finally:
                os.close(folder)

    @contextmanager
    def held(self) -> Iterator[None]:
        """Keep other processes from vendoring in this folder; SourceError when one does not end."""
        folder = os.open(self.folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        deadline = time.monotonic() + WAIT_S
        try:
            while not _locked(folder):
                if time.monotonic() > deadline:
                    raise SourceError(f"{LOCK_NAME}: another process has been vendoring here for {WAIT_S:.0f}s")
                time.sleep(_STEP_S)
            self.forget()  # another process may have written it meanwhile
            yield
        finally:
            os.close(folder)

    def forget(self) -> None:
        """Read the lock again when it is asked for next."""
        for known in ("lock", "_named"):
            self.__dict__.pop(known, None)


def _entered(root: str, path: str, *, make: bool) -> tuple[int, str]:
    """An open descriptor of the folder of `path` below `root`, and the last part; no link is followed."""
    *parts, name = path.split("/")
    folder = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    for part in parts:
        try:
            if make:
                _made(part, folder)
            below = os.open(part, _DIRECTORY, dir_fd=folder)
        except OSError as error:
            raise _failed(path, error) from None
        finally:
            os.close(folder)
        folder = below
    return folder, name


def _made(name: str, folder: int) -> None:
    with suppress(FileExistsError):
        os.mkdir(name, dir_fd=folder)


def _read(folder: int, name: str, path: str, limit: int) -> bytes:
    """The bytes of a regular file; closes the descriptor of its folder."""
    try:
        handle = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=folder)
        with os.fdopen(handle, "rb") as file:
            if not stat.S_ISREG(os.fstat(handle).st_mode):
                raise SourceError(f"{path}: is not a regular file")
            data = file.read(limit + 1)
    except OSError as error:
        raise _failed(path, error) from None
    finally:
        os.close(folder)
    if len(data) > limit:
        raise SourceError(f"{path}: it has more than {limit:,} bytes")
    return data


def _written(folder: int, name: str, data: bytes) -> None:
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    with os.fdopen(os.open(name, flags, 0o644, dir_fd=folder), "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def _locked(folder: int) -> bool:
    try:
        fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _failed(path: str, error: OSError) -> SourceError:
    link = error.errno in (errno.ELOOP, errno.ENOTDIR)
    why = "a symbolic link or a file stands in its way" if link else (error.strerror or str(error))
    hint = "Vendored files lie in real folders; remove what stands there." if link else None
    if isinstance(error, FileNotFoundError):
        why, hint = "no such file", "Restore it from version control, or vendor it again: flowstone vendor"
    return SourceError(f"{path}: {why}", hint=hint)
