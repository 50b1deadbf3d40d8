"""Limits across runs: a run whose workflow is under a named limit waits in line before it is driven.

The line is kept by locks of the operating system, in the order in which runs came. A run that is
ended while it waits is an active run that nobody drives: `resume` puts it at the end of the line.
"""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING

import msgspec

from flowstone.errors import StoreError, UsageError
from flowstone.stores.line import InLine, Place, join, line_of

if TYPE_CHECKING:
    from flowstone.api.session import Session
    from flowstone.run.record import RunRecord

LOOK_S = 0.2
"""How often a waiting run looks whether it is its turn."""
CANCEL_S = 30.0
"""How long an older run that was told to end is waited for."""


class Waiting(msgspec.Struct, frozen=True):
    """A run waits for its turn under a limit; `ahead` are the runs before it, the first first."""

    limit: str
    room: int
    ahead: tuple[str, ...]

    @property
    def text(self) -> str:
        count = len(self.ahead)
        return (
            f'waiting under the limit "{self.limit}" ({self.room} at a time) behind '
            f"{count} run{'' if count == 1 else 's'}: {', '.join(self.ahead[:3])}{', …' if count > 3 else ''}"
        )


@contextmanager
def turn(session: Session, record: RunRecord, tell: Callable[[str], None], *, cancel_older: bool) -> Iterator[None]:
    """Have it be the run's turn under each limit that its workflow is under; `tell` is told of waiting.

    `cancel_older` ends and gives up the runs before it instead.
    """
    with contextlib.ExitStack() as places:
        for name in _limits_of(session, record):
            room, folder = _limits(session)[name][0], _folder(session, name)
            place = join(folder, record.id)
            places.callback(place.leave)
            if cancel_older:
                _cancel(session, place, tell)
            _wait(Waiting(name, room, ()), place, tell)
        yield


def waiting(session: Session) -> Mapping[str, Waiting]:
    """The runs that wait for their turn now, by id."""
    found = {}
    for name, (room, _) in _limits(session).items():
        for entry in line_of(_folder(session, name))[room:]:
            found[entry.run] = Waiting(name, room, entry.ahead)
    return found


def _limits(session: Session) -> Mapping[str, tuple[int, tuple[str, ...]]]:
    return session.wiring.settings.limits


def _limits_of(session: Session, record: RunRecord) -> list[str]:
    """The limits that a run's workflow is under, by name: so two runs never wait for each other."""
    from fnmatch import fnmatchcase

    path = record.source_path or record.ref
    names = {record.ref, path, os.path.relpath(path, record.cwd) if os.path.isabs(path) else path}
    return sorted(
        name
        for name, (_, patterns) in _limits(session).items()
        if any(fnmatchcase(candidate, pattern) for candidate in names for pattern in patterns)
    )


def _folder(session: Session, name: str) -> str:
    return os.path.join(os.path.dirname(session.wiring.paths.database), "limits", name)


class Interrupted(Exception):
    """A signal ended the waiting; `args[0]` is the cause, as a drive words it."""


def _wait(waiting: Waiting, place: Place, tell: Callable[[str], None]) -> None:
    told: tuple[str, ...] = ()
    with _interruptible():
        while len(before := place.ahead()) >= waiting.room:
            ahead = tuple(entry.run for entry in before)
            if ahead != told:
                tell(msgspec.structs.replace(waiting, ahead=ahead).text)
                told = ahead
            time.sleep(LOOK_S)


@contextmanager
def _interruptible() -> Iterator[None]:
    """Have the signals that end a drive end the waiting too; elsewhere than in the main thread nothing can."""

    def stop(number: int, _: object) -> None:
        raise Interrupted(f"signal:{signal.Signals(number).name}")

    before = {}
    try:
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            with contextlib.suppress(ValueError):
                before[number] = signal.signal(number, stop)
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _cancel(session: Session, place: Place, tell: Callable[[str], None]) -> None:
    """End whoever is before, wait until it has, and give its run up."""
    before = place.ahead()
    for entry in before:
        tell(f"run {entry.run} is ended and given up: a newer one takes its place")
        with contextlib.suppress(ProcessLookupError):
            os.kill(entry.pid, signal.SIGTERM)
    deadline = time.monotonic() + CANCEL_S
    while place.ahead():
        if time.monotonic() > deadline:
            raise StoreError(
                f"run {before[0].run} (pid {before[0].pid}) was told to end and has not",
                hint="End its process, or start this run again without --cancel-older.",
            )
        time.sleep(LOOK_S / 4)
    for entry in before:
        _abandon(session, entry)


def _abandon(session: Session, entry: InLine) -> None:
    from flowstone.api.changing import abandon

    with contextlib.suppress(UsageError):  # it ended by itself meanwhile
        abandon(session, entry.run)
