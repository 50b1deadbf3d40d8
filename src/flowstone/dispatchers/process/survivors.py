"""Which processes outlive their command: those that hold its pipes, and those that bear a mark of its run.

Read from /proc; where there is none, nothing is found.
"""

from __future__ import annotations

import os
from collections.abc import Iterator


def holders(fds: tuple[int, ...]) -> tuple[str, ...]:
    """The processes besides this one that hold a pipe which one of our descriptors belongs to, as people name them."""
    links = {f"pipe:[{os.fstat(fd).st_ino}]" for fd in fds if fd >= 0}
    return tuple(_named(pid) for pid in _others() if not links.isdisjoint(_open_files(pid)))


def bearers(mark: bytes) -> tuple[str, ...]:
    """The processes besides this one whose environment holds `mark`."""
    return tuple(_named(pid) for pid in _others() if mark in _environment(pid))


def _others() -> Iterator[int]:
    try:
        names = os.listdir("/proc")
    except OSError:
        return
    for name in sorted(name for name in names if name.isdigit()):
        if int(name) != os.getpid():
            yield int(name)


def _named(pid: int) -> str:
    try:
        with open(f"/proc/{pid}/comm", encoding="utf-8", errors="replace") as file:
            return f"{file.read().strip()} (pid {pid})"
    except OSError:
        return f"pid {pid}"


def _open_files(pid: int) -> Iterator[str]:
    try:
        for name in os.listdir(f"/proc/{pid}/fd"):
            yield os.readlink(f"/proc/{pid}/fd/{name}")
    except OSError:
        return


def _environment(pid: int) -> bytes:
    try:
        with open(f"/proc/{pid}/environ", "rb", buffering=0) as file:
            return file.read()
    except OSError:
        return b""
