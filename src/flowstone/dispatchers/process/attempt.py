"""One running command in the driver: from its spawn until exit, streams and ladder are settled.

It is a listener of the guard and a reader of two pipes, without a task of its own; the caller
waits for `settled`, which yields an `Ending`.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import Callable

import msgspec

from flowstone.dispatchers.process.capture import Stream
from flowstone.dispatchers.process.guard_client import Guard, kill_command

LADDER_S = 2.0
"""Seconds between TERM and KILL for a command that is over its time or cancelled."""


UNWATCHED_S = 0.004
"""Seconds that a command runs before its streams are watched: most of the driver's cost of a short
command would be watching, and what it printed can be read when it ends."""


WAIT_TOLD_S = 1.0
"""Seconds that a command's streams are waited for before somebody is told, where the grace is a long one."""


class Command(msgspec.Struct, frozen=True):
    """What is spawned. `marks` are NAME=value pairs that all its descendants should bear."""

    argv: tuple[str, ...]
    environment: dict[bytes, bytes]
    cwd: str
    marks: tuple[bytes, ...] = ()


class Ending(msgspec.Struct):
    """How a command ended. `status` is its exit code or negated signal, None when not known.

    `not_started` holds errno and subject of a failed spawn. `aborted` is one that its driver ended.
    `held` names the streams that someone still held when the grace was over, `holders` who does so at
    the very end; `leftovers` are processes that could not be ended.
    """

    status: int | None = None
    not_started: tuple[int, str] | None = None
    timed_out: bool = False
    aborted: bool = False
    guard_lost: bool = False
    held: tuple[str, ...] = ()
    holders: tuple[str, ...] = ()
    leftovers: tuple[int, ...] = ()


class Attempt:
    """`limit` and `grace_s` are the capture rule's; `timeout_s` None is no bound."""

    def __init__(
        self,
        guard: Guard,
        command: Command,
        limit: int,
        grace_s: float,
        timeout_s: float | None,
        on_bytes: tuple[Callable[[bytes], None], Callable[[bytes], None]] | None = None,
    ) -> None:
        self._loop = loop = asyncio.get_running_loop()
        self._guard = guard
        self._marks = command.marks
        self._grace_s = grace_s
        self._pid = 0
        self._exited = False
        self._ending_group = False
        self.ending = Ending()
        self.finished = False
        self.on_finish: Callable[[], None] | None = None
        self.on_wait: Callable[[float, tuple[str, ...]], None] | None = None
        self._wait_timer: asyncio.TimerHandle | None = None
        self._waiters: list[asyncio.Future[None]] = []
        out, their_out = os.pipe()
        try:
            err, their_err = os.pipe()
        except OSError:
            os.close(out)
            os.close(their_out)
            raise
        self.out = Stream(out, limit, on_bytes[0] if on_bytes else None)
        self.err = Stream(err, limit, on_bytes[1] if on_bytes else None)
        for stream in (self.out, self.err):
            os.set_blocking(stream.fd, False)
        self._watched = False
        self._watch_timer: asyncio.TimerHandle | None = None
        argv = [argument.encode("utf-8", "surrogateescape") for argument in command.argv]
        cwd = command.cwd.encode("utf-8", "surrogateescape")
        pipes = (their_out, their_err)
        self._key = guard.spawn(self, argv, command.environment, cwd, pipes, command.marks)
        self._timer = None if timeout_s is None else loop.call_later(timeout_s, self._time_out)

    async def settled(self) -> Ending:
        """Wait for the end. A cancellation ends the command first and is raised afterwards."""
        try:
            await self.finish_line()
        except asyncio.CancelledError:
            await self.end()
            raise
        return self.ending

    async def end(self) -> None:
        """Run the ladder to its end, however often the task is cancelled meanwhile."""
        self.abort()
        while not self.finished:
            with contextlib.suppress(asyncio.CancelledError):
                await self.finish_line()

    def abort(self) -> None:
        """Start the ladder of a command that its driver wants to end."""
        self.ending.aborted = not self.finished
        self._start_ladder()

    async def finish_line(self) -> None:
        """Wait for the end, or be cancelled and leave the command running."""
        if not self.finished:
            waiter = self._loop.create_future()
            self._waiters.append(waiter)
            await waiter

    def spawned(self, pid: int) -> None:
        self._pid = pid
        self._watch_timer = self._loop.call_later(UNWATCHED_S, self._watch)

    def failed(self, number: int, which: str) -> None:
        self.ending.not_started = (number, which)
        self._finish()

    def exited(self, status: int) -> None:
        """The leader is done; its streams get the grace to end as well."""
        self.ending.status = status
        self._exited = True
        if self._ending_group:
            return
        self._cancel_timer()
        self._drain()
        if self.out.ended and self.err.ended:
            self._finish()
        else:
            self._watch()
            self._timer = self._loop.call_later(self._grace_s, self._grace_is_over)
            if self._grace_s >= 5 * WAIT_TOLD_S:
                self._wait_timer = self._loop.call_later(WAIT_TOLD_S, self._tell_wait)

    def ended(self, status: int | None, leftovers: tuple[int, ...]) -> None:
        self._exited = True
        if status is not None:
            self.ending.status = status
        self.ending.leftovers = leftovers
        self._drain()
        if self.ending.held:
            self.ending.holders = self._holders()
        self._finish()

    def lost(self) -> None:
        """Without its guard nobody would end the command: do it here."""
        if not self._exited:
            kill_command(self._pid, self._marks)
        self.ending.guard_lost = True
        self._drain()
        self._finish()

    def _watch(self) -> None:
        """From here on the streams are read as they fill."""
        if self._watched:
            return
        self._watched = True
        for stream in (self.out, self.err):
            if stream.fd >= 0:
                self._loop.add_reader(stream.fd, self._readable, stream)

    def _readable(self, stream: Stream) -> None:
        if stream.read():
            self._close(stream)
            if self._exited and not self._ending_group and self.out.ended and self.err.ended:
                self._finish()

    def _drain(self) -> None:
        for stream in (self.out, self.err):
            if not stream.ended and stream.read():
                self._close(stream)

    def _close(self, stream: Stream) -> None:
        if stream.fd >= 0:
            if self._watched:
                self._loop.remove_reader(stream.fd)
            stream.close()

    def _time_out(self) -> None:
        self.ending.timed_out = True
        self._start_ladder()

    def _grace_is_over(self) -> None:
        """Someone still holds a stream. A held stdout means that the group is ended too."""
        self._drain()
        self.ending.held = tuple(
            name for name, stream in (("stdout", self.out), ("stderr", self.err)) if not stream.ended
        )
        if "stdout" in self.ending.held:
            self._start_ladder()
        else:
            self._finish()

    def _tell_wait(self) -> None:
        if self.on_wait is not None and not self.finished:
            self.on_wait(self._grace_s, self._holders())

    def _holders(self) -> tuple[str, ...]:
        from flowstone.dispatchers.process.survivors import holders

        return holders((self.out.fd, self.err.fd))

    def _start_ladder(self) -> None:
        if not self.finished and not self._ending_group:
            self._ending_group = True
            self._cancel_timer()
            self._guard.end(self._key, LADDER_S)

    def _finish(self) -> None:
        if self.finished:
            return
        self.finished = True
        self._cancel_timer()
        for timer in (self._watch_timer, self._wait_timer):
            if timer is not None:
                timer.cancel()
        self._close(self.out)
        self._close(self.err)
        self._guard.release(self._key)
        for waiter in self._waiters:
            if not waiter.done():
                waiter.set_result(None)
        if self.on_finish is not None:
            self.on_finish()

    def _cancel_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
