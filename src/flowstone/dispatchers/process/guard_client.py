"""The driver's end of the guard: starts it, sends it commands and tells listeners what became of them.

Requests are frames of a length and a marshalled tuple: ("spawn", key, argv, environment, cwd,
marks) with the two pipe ends beside it, ("keep", name, value) for a variable that later ones leave
None, ("end", key, grace in seconds), ("release", key). Replies:
("spawned", key, pid), ("failed", key, errno, which), ("exited", key, status), ("ended", key,
status, leftovers). All requests of one turn of the event loop leave in one call,
and releases wait a moment for others to go along with.
"""

from __future__ import annotations

import array
import asyncio
import contextlib
import fcntl
import marshal
import os
import signal
import socket
import sys
from collections.abc import Mapping
from typing import Any, Protocol

from flowstone.dispatchers.process import guard as guard_program
from flowstone.errors import DispatchSetupError

RELEASE_S = 0.005
"""How long a release may wait for a request to go along with: alone it would wake the guard."""

_LARGE_BYTES = 1024
"""A variable beyond this is sent once, and again when it changes: units of a fan-out share theirs."""

_FRAMES_AT_ONCE = 60
"""Spawns in one message: the system bounds the descriptors that go along with it."""


_CLOSE_S = 10.0
"""Seconds that a guard gets to end what is left and go; far more than its ladder takes."""
_SCRIPT = guard_program.__file__


class Listener(Protocol):
    """What the guard tells about one command, in this order; `lost` may come at any point.

    A command that ends at once may not be told as spawned.
    """

    def spawned(self, pid: int) -> None:
        """The command runs, as the leader of a session and group of its own."""

    def failed(self, number: int, which: str) -> None:
        """Nothing was spawned: an errno, and "program", "interpreter" or "cwd"."""

    def exited(self, status: int) -> None:
        """The leader ended with this exit code, or by the negated signal."""

    def ended(self, status: int | None, leftovers: tuple[int, ...]) -> None:
        """The ladder is done; `leftovers` could not be ended."""

    def lost(self) -> None:
        """The guard is gone."""


class Guard:
    """One guard process. It is started at once; requests may follow while it still boots.

    `alive` until its socket closes; `heard` once it has answered anything.
    """

    def __init__(self, lease_fd: int | None, environment: Mapping[str, str]) -> None:
        self._loop = asyncio.get_running_loop()
        self._sock, theirs = socket.socketpair()
        self._sock.setblocking(False)
        try:
            self.pid = _start(theirs.fileno(), lease_fd, environment)
        except OSError as error:
            self._sock.close()
            raise DispatchSetupError(f"the guard process cannot be started: {error}") from error
        finally:
            theirs.close()
        self.alive = True
        self.heard = False
        self._listeners: dict[int, Listener] = {}
        self._outbox: list[tuple[bytes, tuple[int, ...]]] = []
        self._unsent = b""
        self._due = False
        self._later: asyncio.TimerHandle | None = None
        self._inbox = bytearray()
        self._keys = 0
        self._kept: dict[bytes, bytes] = {}
        self._gone = self._loop.create_future()
        self._loop.add_reader(self._sock, self._receive)

    def spawn(
        self,
        listener: Listener,
        argv: list[bytes],
        environment: dict[bytes, bytes],
        cwd: bytes,
        pipes: tuple[int, int],
        marks: tuple[bytes, ...],
    ) -> int:
        """Ask for a command; `pipes` are the write ends and are closed here. Returns its key."""
        self._keys += 1
        self._listeners[self._keys] = listener
        self._post(("spawn", self._keys, argv, self._slim(environment), cwd, marks), pipes)
        return self._keys

    def _slim(self, environment: dict[bytes, bytes]) -> dict[bytes, bytes | None]:
        """The environment with None for what the guard has kept."""
        slim: dict[bytes, bytes | None] = {**environment}
        for name, value in environment.items():
            if len(value) > _LARGE_BYTES:
                if self._kept.get(name) != value:
                    self._kept[name] = value
                    self._post(("keep", name, value))
                slim[name] = None
        return slim

    def end(self, key: int, grace: float) -> None:
        """TERM to all that a command is, KILL after `grace` seconds; `ended` is told at the end."""
        self._post(("end", key, grace))

    def release(self, key: int) -> None:
        """The outcome is known: what is left of the command may be reaped and forgotten."""
        if self._listeners.pop(key, None) is not None and self.alive:
            self._post(("release", key), patience=RELEASE_S)

    async def close(self) -> None:
        """Let the guard end what is left, and reap it."""
        if self.alive:
            self.flush()
            self._sock.shutdown(socket.SHUT_WR)
            await asyncio.wait({self._gone}, timeout=_CLOSE_S)
        if self.alive:
            os.kill(self.pid, signal.SIGKILL)
            await self._gone

    def _post(self, request: tuple[Any, ...], pipes: tuple[int, ...] = (), patience: float = 0) -> None:
        if not self.alive:
            _close_all(pipes)
            return
        if patience:
            if not self._outbox:
                self._later = self._loop.call_later(patience, self.flush)
        elif not self._due:
            self._due = True
            self._loop.call_soon(self.flush)
        frame = marshal.dumps(request)
        self._outbox.append((len(frame).to_bytes(4, "big") + frame, pipes))

    def flush(self) -> None:
        """Send what is due; what does not fit waits until the socket takes more."""
        self._due = False
        if self._later is not None:
            self._later.cancel()
            self._later = None
        while self._outbox and self.alive and not self._unsent:
            batch, self._outbox = self._outbox[:_FRAMES_AT_ONCE], self._outbox[_FRAMES_AT_ONCE:]
            fds = [fd for _, pipes in batch for fd in pipes]
            data = b"".join(frame for frame, _ in batch)
            rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", fds))] if fds else []
            try:
                sent = self._sock.sendmsg([data], rights)
            except BlockingIOError:
                self._outbox = batch + self._outbox
                self._loop.add_writer(self._sock, self._writable)
                return
            except OSError:
                _close_all(fds)
                self._lose()
                return
            _close_all(fds)
            self._unsent = data[sent:]
        if self._unsent:
            self._loop.add_writer(self._sock, self._writable)

    def _writable(self) -> None:
        try:
            if self._unsent:
                self._unsent = self._unsent[self._sock.send(self._unsent) :]
        except BlockingIOError:
            return
        except OSError:
            self._lose()
            return
        if not self._unsent:
            self._loop.remove_writer(self._sock)
            self.flush()

    def _receive(self) -> None:
        try:
            data = self._sock.recv(1 << 16)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            self._lose()
            return
        self.heard = True
        inbox = self._inbox
        inbox += data
        start = 0
        while len(inbox) - start >= 4:
            end = start + 4 + int.from_bytes(inbox[start : start + 4], "big")
            if len(inbox) < end:
                break
            self._tell(marshal.loads(inbox[start + 4 : end]))
            start = end
        del inbox[:start]

    def _tell(self, reply: tuple[Any, ...]) -> None:
        listener = self._listeners.get(reply[1])
        if listener is None:
            return
        match reply:
            case ("spawned", _, pid):
                listener.spawned(pid)
            case ("exited", _, status):
                listener.exited(status)
            case ("failed", key, number, which):
                del self._listeners[key]
                listener.failed(number, which)
            case ("ended", key, status, leftovers):
                del self._listeners[key]
                listener.ended(status, leftovers)

    def _lose(self) -> None:
        """The guard is gone: close up, reap it, and tell everyone who waits."""
        if not self.alive:
            return
        self.alive = False
        self._loop.remove_reader(self._sock)
        self._loop.remove_writer(self._sock)
        self._sock.close()
        for _, pipes in self._outbox:
            _close_all(pipes)
        self._outbox.clear()
        _reap(self.pid)
        listeners, self._listeners = self._listeners, {}
        for listener in listeners.values():
            listener.lost()
        if not self._gone.done():
            self._gone.set_result(None)


def kill_command(pid: int, marks: tuple[bytes, ...]) -> None:
    """End a command whose guard is gone: its group, and what can be found of it elsewhere.

    A `pid` of 0 is one that the guard had not told yet: then the marks alone lead to it.
    """
    if not pid and not marks:
        return
    command = guard_program.Command(0, pid or -2, marks)
    command.signal = signal.SIGKILL
    command.reaped = True
    guard_program.strike(command, guard_program.Processes())


def _start(sock: int, lease_fd: int | None, environment: Mapping[str, str]) -> int:
    """Spawn the guard with its socket and the lease at fixed descriptors, in its own session."""
    inherited = [fcntl.fcntl(sock, fcntl.F_DUPFD_CLOEXEC, 10)]
    arguments = [sys.executable, "-I", "-S", _SCRIPT]
    if lease_fd is not None:
        inherited.append(fcntl.fcntl(lease_fd, fcntl.F_DUPFD_CLOEXEC, 10))
        arguments.append("lease")
    actions: list[tuple[Any, ...]] = [(os.POSIX_SPAWN_OPEN, fd, "/dev/null", os.O_RDWR, 0) for fd in (0, 1, 2)]
    targets = (guard_program.SOCKET_FD, guard_program.LEASE_FD)
    actions += [(os.POSIX_SPAWN_DUP2, fd, target) for fd, target in zip(inherited, targets, strict=False)]
    try:
        return os.posix_spawn(
            sys.executable,
            arguments,
            dict(environment),
            file_actions=actions,
            setsid=True,
            setsigmask=(),
            setsigdef=(signal.SIGCHLD,),
        )
    finally:
        _close_all(inherited)


def _reap(pid: int) -> None:
    with contextlib.suppress(ChildProcessError):
        os.waitpid(pid, 0)


def _close_all(fds: list[int] | tuple[int, ...]) -> None:
    for fd in fds:
        os.close(fd)
