"""The journal of one run as a driver sees it: replay it, append to it, keep large values outside.

In memory an event holds its whole values; in the store a value beyond `BLOB_BYTES` is a digest, and
the bytes are in the blob store. Live and resumed steps so read the same bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from flowstone.plan.model import Plan
from flowstone.ports.store import Store
from flowstone.run.events import AttemptEnded, Event, StepClosed
from flowstone.run.fold import fold
from flowstone.run.outcome import is_large
from flowstone.run.state import State
from flowstone.values import canonical_bytes, decode_json


class Journal:
    """Appends the events of one run, each batch as one commit, behind the sequence number it knows."""

    def __init__(self, store: Store, run_id: str, seq: int = 0) -> None:
        self._store = store
        self._run_id = run_id
        self._seq = seq

    def append(self, events: Sequence[Event], state: State, meanwhile: Callable[[], object] | None = None) -> None:
        """Make events durable that are already folded into `state`; for `meanwhile` see `Store.append`."""
        stored = [self._outside(event) for event in events]
        self._seq = self._store.append(self._run_id, self._seq, stored, state.summary(), meanwhile)

    def _outside(self, event: Event) -> Event:
        if isinstance(event, AttemptEnded) and is_large(event.outcome.value):
            digest = self._store.put_blob(canonical_bytes(event.outcome.value))
            outcome = msgspec.structs.replace(event.outcome, value=None, blob=digest)
            return msgspec.structs.replace(event, outcome=outcome)
        if isinstance(event, StepClosed) and is_large(event.artifact):
            digest = self._store.put_blob(canonical_bytes(event.artifact))
            return msgspec.structs.replace(event, artifact=None, blob=digest)
        return event


def replay(store: Store, run_id: str, plan: Plan, *, whole: bool = True) -> State:
    """The state of a run; `whole` fetches values from the blob store (a lost one raises)."""
    state = State(run_id, plan)
    for recorded in store.read(run_id):
        fold(state, _inside(store, recorded.event) if whole else recorded.event)
    return state


def _inside(store: Store, event: Event) -> Event:
    if isinstance(event, AttemptEnded) and event.outcome.blob is not None:
        value = _fetch(store, event.outcome.blob)
        return msgspec.structs.replace(event, outcome=msgspec.structs.replace(event.outcome, value=value))
    if isinstance(event, StepClosed) and event.blob is not None:
        return msgspec.structs.replace(event, artifact=_fetch(store, event.blob))
    return event


def _fetch(store: Store, digest: str) -> Any:
    return decode_json(store.get_blob(digest), whole_floats=False)
