"""The lease of a run: an operating-system lock on `<folder>/<run>.lock`, whoever holds it named inside.

The lock goes with the open file, so a dead process never holds one, a suspended one is never robbed,
and a guard process that inherited the descriptor keeps it until it has ended the commands.
"""

from __future__ import annotations

import fcntl
import os
import time
from binascii import crc32

import msgspec

from flowstone.errors import LeaseHeld
from flowstone.stores.files import check_run_id, make_private_folder, storage_error

SETTLE_MS = 50
"""How long a new holder may take from locking the file to naming itself in it."""

_RECORD_BYTES = 1024
_RETRY_S = 0.005


class FileLease:
    """A held lock. `fd` stays open until `release`; a guard inherits it."""

    def __init__(self, path: str, descriptor: int) -> None:
        self._path = path
        self._descriptor: int | None = descriptor

    @property
    def fd(self) -> int | None:
        return self._descriptor

    def release(self) -> None:
        """Unlock for everyone who inherited the descriptor, and remove the file."""
        if self._descriptor is None:
            return
        descriptor, self._descriptor = self._descriptor, None
        try:
            # Removed while it is held: whoever locks the removed file next sees that and opens anew.
            if _is_at(descriptor, self._path):
                os.unlink(self._path)
        except OSError:
            pass  # a file that stays holds nobody up
        finally:
            fcntl.flock(descriptor, fcntl.LOCK_UN)
            os.close(descriptor)


def take_lease(folder: str, run_id: str, holder: str, wait_ms: int = 0) -> FileLease:
    """Lock a run, or raise LeaseHeld: at once for a live holder, after `wait_ms` for a dead one.

    A dead holder's lock is free unless its guard still has the descriptor; that is what is waited for.
    """
    path = os.path.join(folder, f"{check_run_id(run_id)}.lock")
    make_private_folder(folder)
    deadline = time.monotonic() + max(wait_ms, SETTLE_MS) / 1000
    try:
        while True:
            descriptor = _try_lock(path, holder)
            if descriptor is not None:
                return FileLease(path, descriptor)
            found = read_holder(path)
            if found is not None and is_alive(found):
                raise _held(run_id, found)
            if time.monotonic() >= deadline:
                raise _held(run_id, found)
            time.sleep(_RETRY_S)
    except OSError as error:
        raise storage_error(error, path) from error


def living_holder(folder: str, run_id: str) -> str | None:
    """Who drives a run, as `pid 123`; None when nobody living is named. Takes no lock."""
    found = read_holder(os.path.join(folder, f"{check_run_id(run_id)}.lock"))
    return _name_of(found) if found is not None and is_alive(found) else None


class Holder(msgspec.Struct, frozen=True, rename="camel"):
    """Who holds a lease. `born` tells the process from a later one with the same pid, where known.

    `check` is a checksum of the other fields, by which a half-written record is known.
    """

    pid: int
    host: str
    started_at: int
    holder: str
    born: str = ""
    check: str = ""


def read_holder(path: str) -> Holder | None:
    """Who is named in a lock file; None when nobody is, or the name is just being written."""
    try:
        with open(path, "rb") as file:
            found = msgspec.json.decode(file.read(_RECORD_BYTES), type=Holder)
        return found if found.check == _checked(found).check else None
    except (OSError, ValueError):
        return None


def is_alive(holder: Holder) -> bool:
    """Whether the named process lives; one on another host is taken to."""
    if holder.host != os.uname().nodename:
        return True
    try:
        os.kill(holder.pid, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:
        pass
    state, born = _process_facts(holder.pid)
    return state not in {"Z", "X"} and (not born or not holder.born or born == holder.born)


def _try_lock(path: str, holder: str) -> int | None:
    """The descriptor of the locked file that stands at `path`, or None if someone else has it."""
    while True:
        flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
        descriptor = os.open(path, flags, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if _is_at(descriptor, path):
                _write_holder(descriptor, holder)
                return descriptor
        except BlockingIOError:
            os.close(descriptor)
            return None
        except OSError:
            os.close(descriptor)
            raise
        os.close(descriptor)


def _is_at(descriptor: int, path: str) -> bool:
    """Whether the open file is still the one of that name."""
    try:
        return os.path.samestat(os.fstat(descriptor), os.stat(path, follow_symlinks=False))
    except FileNotFoundError:
        return False


def _write_holder(descriptor: int, holder: str) -> None:
    """Name this process in the file, always in the same length, so that it never needs shortening."""
    pid = os.getpid()
    name = holder[:100].encode("utf-8", "replace").decode()
    born = _process_facts(pid)[1]
    found = _checked(Holder(pid, os.uname().nodename, int(time.time() * 1000), name, born))
    os.pwrite(descriptor, msgspec.json.encode(found).ljust(_RECORD_BYTES - 1) + b"\n", 0)
    os.ftruncate(descriptor, _RECORD_BYTES)


def _checked(holder: Holder) -> Holder:
    plain = msgspec.json.encode(msgspec.structs.replace(holder, check=""))
    return msgspec.structs.replace(holder, check=f"{crc32(plain):08x}")


def _process_facts(pid: int) -> tuple[str, str]:
    """State letter and start time of a process, empty where the system does not tell."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            fields = file.read().rpartition(b")")[2].split()
        return fields[0].decode(), fields[19].decode()
    except (OSError, IndexError):
        return "", ""


def _name_of(found: Holder) -> str:
    return f"pid {found.pid}" + ("" if found.host == os.uname().nodename else f" on {found.host}")


def _held(run_id: str, found: Holder | None) -> LeaseHeld:
    if found is None:
        return LeaseHeld(f"run {run_id} is held by another process", holder="unknown")
    since = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(found.started_at / 1000))
    name = _name_of(found)
    if is_alive(found):
        return LeaseHeld(
            f"run {run_id} is held by {name} since {since}",
            holder=name,
            hint="wait until it ends, or stop it",
        )
    return LeaseHeld(
        f"run {run_id}: {name}, which held it since {since}, is dead, but its commands are still being ended",
        holder=name,
        hint="try again in a moment",
    )
