"""Approvals in a journal: how often a person was asked, since when, and the outcome that an answer is.

The answer is kept like the outcome of a unit that runs away from the driver, under a key of its own:
the first writer wins, be it a person or the end of the time, and no lease is needed.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime

import msgspec

from flowstone.run.events import AttemptEnded, AttemptStarted, Recorded
from flowstone.run.outcome import Outcome, Reason, failed
from flowstone.values import Json

ANSWER = "answer"
"""Stands where the key of a unit's outcome has its input hash."""


class Asking(msgspec.Struct, frozen=True):
    """The `number`-th time (from 0) that an approval is asked for, and since when in milliseconds."""

    unit: str
    number: int
    since: int


def last_asking(events: Iterable[Recorded], step: str) -> Asking | None:
    """The asking of a step that is not answered yet; None where nobody was asked since the last answer.

    A drive that was stopped or killed did not answer: the same asking goes on.
    """
    number, since, unit = 0, None, ""
    for recorded in events:
        match recorded.event:
            case AttemptStarted(step=name, unit=asked, at=at) if name == step:
                unit, since = asked, at if since is None else since
            case AttemptEnded(step=name, outcome=outcome) if name == step and outcome.reason is not Reason.ABORTED:
                number, since = number + 1, None
            case _:
                pass
    return None if since is None else Asking(f"{unit}.{ANSWER}", number, since)


def answer(*, approved: bool, by: str, at: int, note: str | None) -> Outcome:
    """A person's decision as the outcome of the step: who, when, and why if they said so."""
    value: dict[str, Json] = {"approved": approved, "by": by, "at": _rfc3339(at), "note": note or ""}
    if approved:
        return Outcome(value=value)
    error = f"rejected by {by}" + (f": {note}" if note else "")
    return Outcome(reason=Reason.REPORTED_FAILURE, value=value, error=error, diagnostic=error)


def unanswered(limit: str, at: int, *, approved: bool) -> Outcome:
    """What the end of the time decides."""
    if approved:
        return Outcome(value={"approved": True, "by": "timeout", "at": _rfc3339(at), "note": ""})
    return failed(Reason.TIMEOUT, f"approval: nobody decided within {limit}")


def _rfc3339(milliseconds: int) -> str:
    return f"{datetime.fromtimestamp(milliseconds // 1000, UTC):%Y-%m-%dT%H:%M:%SZ}"
