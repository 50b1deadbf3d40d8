"""Events, outcomes, records and summaries ↔ JSON text: what every store keeps and reads back.

Reading is strict about what it knows (an unknown event or a wrong type is a CorruptJournal) and
tolerant of what came later (unknown fields are ignored), so that old and new journals stay readable.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import msgspec

from flowstone.errors import CorruptJournal, StoreError
from flowstone.run.events import (
    AttemptEnded,
    AttemptStarted,
    DriverStarted,
    Event,
    RunAbandoned,
    RunClosed,
    RunInterrupted,
    RunReopened,
    StepClosed,
    StepDecided,
    StepOpened,
    StepRejected,
)
from flowstone.run.outcome import Outcome
from flowstone.run.record import RunRecord, RunRow, RunSummary
from flowstone.values import canonical_json


def encode_event(event: Event) -> str:
    """An event as JSON text, whole: an `AttemptEnded` with its outcome in it."""
    return _encode(event)


def encode_end(event: AttemptEnded) -> str:
    """An `AttemptEnded` without its outcome, for a store that keeps outcomes apart."""
    return _encode(_StoredEnd(event.step, event.unit, event.at, event.number, event.index))


def decode_event(body: str, outcome: str | None = None) -> Event:
    """Read an event; `outcome` is the text of an `AttemptEnded`'s outcome that was kept apart."""
    event = _decode(_EVENT, body)
    if type(event) is not _StoredEnd:
        return event  # type: ignore[no-any-return]  # the decoder's union, less _StoredEnd
    ended = event.outcome if outcome is None else decode_outcome(outcome)
    if ended is None:
        raise CorruptJournal(f'the outcome of attempt {event.number} of unit "{event.unit}" is lost')
    return AttemptEnded(event.step, event.unit, event.at, ended, event.number, event.index)


def kind_of(event: Event) -> str:
    """The tag under which an event is kept, such as `step-opened`."""
    return str(event.__struct_config__.tag)


def encode_outcome(outcome: Outcome) -> str:
    return _encode(outcome)


def decode_outcome(body: str) -> Outcome:
    return _decode(_OUTCOME, body)  # type: ignore[no-any-return]  # the decoder's own type


def encode_header(record: RunRecord) -> str:
    """A record without its plan, which a list must not have to read."""
    return _encode(msgspec.structs.replace(record, plan=""))


def encode_summary(summary: RunSummary) -> str:
    return _encode(summary)


def decode_row(header: str, summary: str, plan: str = "") -> RunRow:
    record: RunRecord = _decode(_RECORD, header)
    if plan:
        record = msgspec.structs.replace(record, plan=plan)
    return RunRow(record, _decode(_SUMMARY, summary))


class _StoredEnd(msgspec.Struct, frozen=True, tag="attempt-ended", omit_defaults=True):
    """An `AttemptEnded` as it is stored: its outcome in it, or apart (then None)."""

    step: str
    unit: str
    at: int
    number: int = 0
    index: int = 0
    outcome: Outcome | None = None


_StoredEvent: TypeAlias = (
    DriverStarted
    | StepOpened
    | AttemptStarted
    | _StoredEnd
    | StepClosed
    | StepDecided
    | StepRejected
    | RunClosed
    | RunReopened
    | RunAbandoned
    | RunInterrupted
)

_ENCODER = msgspec.json.Encoder()
_EVENT: msgspec.json.Decoder[Any] = msgspec.json.Decoder(_StoredEvent)
_OUTCOME: msgspec.json.Decoder[Any] = msgspec.json.Decoder(Outcome)
_RECORD: msgspec.json.Decoder[Any] = msgspec.json.Decoder(RunRecord)
_SUMMARY: msgspec.json.Decoder[Any] = msgspec.json.Decoder(RunSummary)


def _encode(value: Any) -> str:
    try:
        body = _ENCODER.encode(value)
        if b"null" in body:
            # The encoder writes NaN and the infinities as null; canonical JSON refuses them.
            canonical_json(msgspec.to_builtins(value))
        return body.decode()
    except (ValueError, TypeError, RecursionError) as error:
        raise StoreError(f"{type(value).__name__} cannot be stored as JSON: {error}") from error


def _decode(decoder: msgspec.json.Decoder[Any], body: str) -> Any:
    try:
        return decoder.decode(body)
    except (ValueError, TypeError, RecursionError) as error:
        raise CorruptJournal(f"the journal holds what this version cannot read: {error}") from error


def blobs_named(body: str) -> list[str]:
    """The digests of the blobs that a stored event or outcome names (and perhaps some that it only quotes)."""
    import re

    return re.findall('"blob":"([0-9a-f]{64})"', body) if '"blob":"' in body else []
