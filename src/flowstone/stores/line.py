"""The waiting line of one named limit: a locked file for each run in it, in the order in which they came.

The first `room` living places are in, all others wait. A lock goes with its process, so that a dead one
never holds anybody up, and a place is never robbed of a suspended one.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager

import msgspec

from flowstone.stores.files import make_private_folder, storage_error

_DOOR = "door.lock"
_TICKET = re.compile(r"(\d{12})\.place")


class InLine(msgspec.Struct, frozen=True):
    """A run in a line and the process that brought it there; `ahead` are the runs before it."""

    run: str
    pid: int
    ahead: tuple[str, ...] = ()


class Place:
    """A place in the line, held until `leave` or the end of the process."""

    def __init__(self, folder: str, name: str, descriptor: int) -> None:
        self._folder = folder
        self._name = name
        self._descriptor: int | None = descriptor

    def ahead(self) -> list[InLine]:
        """Who living stands before this place, the first first."""
        return [found for name, found in _living(self._folder) if name < self._name]

    def leave(self) -> None:
        """Give the place up; leaving twice does nothing."""
        if self._descriptor is not None:
            descriptor, self._descriptor = self._descriptor, None
            with contextlib.suppress(OSError):
                os.unlink(os.path.join(self._folder, self._name))
            os.close(descriptor)


def join(folder: str, run: str) -> Place:
    """Stand at the end of the line that `folder` keeps. StoreError when the folder cannot be used."""
    make_private_folder(folder)
    try:
        with _door(folder):
            _sweep(folder)
            name = f"{_next_number(folder):012}.place"
            flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW
            descriptor = os.open(os.path.join(folder, name), flags, 0o600)
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            os.write(descriptor, msgspec.json.encode(InLine(run, os.getpid())))
    except OSError as error:
        raise storage_error(error, folder) from error
    return Place(folder, name, descriptor)


def line_of(folder: str) -> list[InLine]:
    """Everybody living in a line, the first first, each with the runs before it."""
    found: list[InLine] = []
    for _, entry in _living(folder):
        found.append(msgspec.structs.replace(entry, ahead=tuple(before.run for before in found)))
    return found


@contextmanager
def one_at_a_time(folder: str) -> Iterator[None]:
    """Only one process is in here; the others wait. A dead one is out."""
    make_private_folder(folder)
    with _door(folder):
        yield


@contextmanager
def _door(folder: str) -> Iterator[None]:
    """One at a time comes in: numbers are given out in order, and nobody sweeps a place being made."""
    descriptor = os.open(os.path.join(folder, _DOOR), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _names(folder: str) -> list[str]:
    try:
        return sorted(name for name in os.listdir(folder) if _TICKET.fullmatch(name))
    except FileNotFoundError:
        return []


def _next_number(folder: str) -> int:
    """Numbers only grow, also past places that were left: the door file remembers the last one."""
    path = os.path.join(folder, _DOOR)
    with open(path, "r+", encoding="ascii") as file:
        text = file.read().strip()
        last = max([int(text) if text.isdigit() else 0, *(int(name[:12]) for name in _names(folder))])
        file.seek(0)
        file.write(f"{last + 1:012}")
    return last + 1


def _sweep(folder: str) -> None:
    for name in _names(folder):
        if not _is_held(os.path.join(folder, name)):
            with contextlib.suppress(OSError):
                os.unlink(os.path.join(folder, name))


def _living(folder: str) -> Iterator[tuple[str, InLine]]:
    for name in _names(folder):
        path = os.path.join(folder, name)
        if _is_held(path):
            try:
                with open(path, "rb") as file:
                    yield name, msgspec.json.decode(file.read(4096), type=InLine)
            except (OSError, msgspec.DecodeError):
                yield name, InLine("", 0)


def _is_held(path: str) -> bool:
    """Whether a living process holds a place; a shared lock asks without taking anything."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
    except OSError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    else:
        return False
    finally:
        os.close(descriptor)
