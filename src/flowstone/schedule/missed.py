"""Fire times that have come → those that are run now, by the rule for missed ones."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

import msgspec

from flowstone.ports.activation import Missed

ON_TIME = timedelta(seconds=60)
"""A time that came no longer ago than this is not missed."""
SET_BACK = timedelta(hours=3)
"""A clock that goes back further was put right: what comes is counted from there anew."""


class Due(msgspec.Struct, frozen=True):
    """`run` are the times to run, the oldest first; `missed` how many came too late, `dropped` how many
    of these have no run of their own.
    """

    run: tuple[datetime, ...] = ()
    missed: int = 0
    dropped: int = 0


def due(times: Sequence[datetime], now: datetime, rule: Missed, window: timedelta) -> Due:
    """What to run of the times since the last look (in order, none behind `now`).

    `skip` drops every missed time; `once` makes one run of all of them; `all` runs each that is not
    older than `window`. A time that is on time is run by every rule.
    """
    late = [moment for moment in times if now - moment > ON_TIME]
    prompt = [moment for moment in times if now - moment <= ON_TIME]
    match rule:
        case Missed.SKIP:
            kept: list[datetime] = []
        case Missed.ONCE:
            kept = [] if prompt else late[-1:]
            prompt = prompt[-1:]
        case Missed.ALL:
            kept = [moment for moment in late if now - moment <= window]
    return Due((*kept, *prompt), len(late), len(late) - len(kept))


def looked_until(mark: datetime | None, now: datetime) -> datetime:
    """From when on times are new: behind the last look, which a clock that was set back does not repeat."""
    if mark is None or mark - now > SET_BACK:
        return now
    return mark
