"""A folder whose files are replaced whole, whatever the commands that work in it have put there.

Every step down goes by descriptor and follows no link, so that a planted symlink never leads a
write elsewhere; what stands in the way of a file or folder is moved aside.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Sequence

from flowstone.stores.files import write_all

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_NEW_FILE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


def put_file(root: str, path: str, data: bytes, mode: int = 0o600) -> None:
    """Write `data` at `path` below the folder `root`: a reader sees the old content or all of the new.

    ValueError for a path that does not stay below `root`; OSError when it cannot be written.
    """
    *folders, name = parts_of(path)
    descriptor = open_folder(root, folders)
    try:
        _put(descriptor, name, data, mode)
    finally:
        os.close(descriptor)


def parts_of(path: str) -> list[str]:
    """The names of a relative path; ValueError when it is none or leads upwards."""
    parts = path.split("/")
    if "\0" in path or any(part in {"", ".", ".."} for part in parts):
        raise ValueError(f"{path!r} does not name a file of the run folder")
    return parts


def open_folder(root: str, names: Sequence[str]) -> int:
    """A descriptor of the folder `names` below `root`, which must exist; the others are made."""
    current = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    for name in names:
        try:
            below = _enter(current, name)
        finally:
            os.close(current)
        current = below
    return current


def _enter(parent: int, name: str) -> int:
    try:
        return os.open(name, _FOLDER, dir_fd=parent)
    except FileNotFoundError:
        pass
    except OSError:
        # A file or a link stands there; if not, the second try says what is wrong.
        if _is_folder(parent, name):
            raise
        _move_aside(parent, name)
    os.mkdir(name, 0o700, dir_fd=parent)
    return os.open(name, _FOLDER, dir_fd=parent)


def _put(folder: int, name: str, data: bytes, mode: int) -> None:
    temporary = f".{name}.{os.urandom(4).hex()}"
    descriptor = os.open(temporary, _NEW_FILE, mode, dir_fd=folder)
    try:
        try:
            write_all(descriptor, data)
        finally:
            os.close(descriptor)
        if _is_folder(folder, name):
            _move_aside(folder, name)
        os.rename(temporary, name, src_dir_fd=folder, dst_dir_fd=folder)
    except OSError:
        os.unlink(temporary, dir_fd=folder)
        raise


def _is_folder(folder: int, name: str) -> bool:
    try:
        return stat.S_ISDIR(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode)
    except FileNotFoundError:
        return False


def _move_aside(folder: int, name: str) -> None:
    """Give what a command put there another name: it may be somebody's work."""
    os.rename(name, f"{name}.moved-{os.urandom(4).hex()}", src_dir_fd=folder, dst_dir_fd=folder)
