"""The log view: journal events as the documented event types, with ids and offsets, never content."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeAlias

import msgspec

from flowstone.plan.units import EnvBinding, EnvRef
from flowstone.run.events import (
    AttemptEnded,
    AttemptStarted,
    DriverStarted,
    Event,
    RunAbandoned,
    RunClosed,
    RunStatus,
    Status,
    StepClosed,
)
from flowstone.run.outcome import Outcome
from flowstone.views.moments import iso
from flowstone.views.words import Word

Fields: TypeAlias = dict[str, Any]


class LogSource(msgspec.Struct, frozen=True):
    """What the log asks about a run: its workflow's ref, and whether an event is the run's first."""

    ref_of: Callable[[str], str]
    is_first: Callable[[str, Event], bool]
    bindings_of: Callable[[str, str], tuple[EnvBinding, ...]] = lambda run, step: ()
    """What a step of a run binds, by its plan."""


class LogQuery(msgspec.Struct, frozen=True):
    """Which entries are wanted: None is no condition; `since` is in milliseconds since the epoch."""

    type: str | None = None
    ref: str | None = None
    since: int | None = None
    limit: int | None = None


def log_view(
    events: Iterable[tuple[int, str, Event]],
    source: LogSource,
    query: LogQuery,
    word: Word,
    *,
    after: int = 0,
    full: bool = False,
    run: str | None = None,
) -> Fields:
    """The envelope of `akm log`, the oldest first; `limit` keeps the most recent entries.

    `nextOffset` is the offset behind everything that was read: the next call starts after it.
    """
    kept: deque[Fields] = deque(maxlen=query.limit)
    total, last = 0, after
    for offset, run_id, event in events:
        last = max(last, offset)
        for entry in _entries(offset, run_id, event, source, word):
            if _wanted(entry, event, query):
                total += 1
                kept.append(entry)
    shown = list(kept) if full else [_short(entry) for entry in kept]
    head: Fields = {"schemaVersion": 1} if run is None else {"schemaVersion": 1, "run": run}
    return {**head, "totalCount": total, "events": shown, "nextOffset": last}


def _entries(offset: int, run_id: str, event: Event, source: LogSource, word: Word) -> Iterator[Fields]:
    """The documented entries of one journal event; most have one or none."""
    found = _typed(run_id, event, source, word)
    for kind, metadata in (*([found] if found else []), *_accesses(run_id, event, source)):
        yield {
            "eventType": kind,
            "ref": source.ref_of(run_id),
            "ts": iso(event.at),
            "id": offset,
            "metadata": {"runId": run_id, **metadata},
        }


def _accesses(run_id: str, event: Event, source: LogSource) -> Iterator[tuple[str, Fields]]:
    """The env assets that an attempt reads when it starts, by their names: never a value."""
    if isinstance(event, AttemptStarted) and event.index >= 0:
        for binding in source.bindings_of(run_id, event.step):
            if isinstance(binding, EnvRef) and binding.owner:
                names: Fields = {"envRef": binding.ref, "keys": list(binding.keys)}
                names |= {"secretNames": list(binding.secret_names)} if binding.secret_names else {}
                yield "env_access", {"stepId": event.step, "unitId": event.unit, **names}


def _typed(run_id: str, event: Event, source: LogSource, word: Word) -> tuple[str, Fields] | None:
    """The documented type of an event and its ids (akm facts 23); None for one that has none."""
    match event:
        case DriverStarted():
            first = source.is_first(run_id, event)
            return ("workflow_started", {"status": word(RunStatus.ACTIVE)}) if first else None
        case AttemptStarted():
            return "workflow_unit_started", {"stepId": event.step, "unitId": event.unit}
        case AttemptEnded():
            return "workflow_unit_finished", {
                "stepId": event.step,
                "unitId": event.unit,
                **_finish(event.outcome, word),
            }
        case StepClosed():
            done = event.status is Status.SUCCEEDED
            kind = "workflow_step_completed" if done else "workflow_step_updated"
            return kind, {"stepId": event.step, "status": word(event.status)}
        case RunClosed(status=RunStatus.SUCCEEDED):
            return "workflow_finished", {}
        case RunAbandoned():
            return "workflow_abandoned", {}
    return None


def _finish(outcome: Outcome, word: Word) -> Fields:
    shown: Fields = {"status": word(Status.SUCCEEDED if outcome.ok else Status.FAILED)}
    if outcome.reason is not None:
        shown["failureReason"] = outcome.reason
    if outcome.tokens is not None:
        shown["tokens"] = outcome.tokens
    return shown


def _wanted(entry: Fields, event: Event, query: LogQuery) -> bool:
    if query.type is not None and entry["eventType"] != query.type:
        return False
    if query.since is not None and event.at < query.since:
        return False
    return query.ref is None or _same_ref(entry["ref"], query.ref)


def _same_ref(full: str, given: str) -> bool:
    """Whether a ref is the one given, with or without its bundle."""
    return full == given or full.rpartition("//")[2] == given


def _short(entry: Fields) -> Fields:
    return {key: entry[key] for key in ("eventType", "ref", "ts")}
