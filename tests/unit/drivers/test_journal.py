"""The journal of a run: one commit a batch, large values by digest, no two drivers."""

from __future__ import annotations

import pytest

from flowstone.drivers.journal import Journal, replay
from flowstone.errors import CorruptJournal, JournalConflict
from flowstone.run.events import AttemptEnded, AttemptStarted, DriverStarted, Status, StepClosed, StepOpened
from flowstone.run.fold import fold
from flowstone.run.outcome import Outcome
from flowstone.run.record import RunSummary
from flowstone.run.state import State
from flowstone.stores.memory import MemoryStore
from flowstone.testing.plans import solo, spine
from flowstone.testing.store_contract import RUN, record

PLAN = spine(solo("a"))
LARGE = {"text": "ä" * 600_000, "whole": 1.0, "big": 2**70}


@pytest.fixture
def store():
    store = MemoryStore()
    store.create(record(), RunSummary())
    return store


def append(store, *batches):
    state = State(RUN, PLAN)
    journal = Journal(store, RUN)
    for events in batches:
        for event in events:
            fold(state, event)
        journal.append(events, state)
    return state


def history(value):
    return [
        [DriverStarted(1, "x"), StepOpened("a", 1), AttemptStarted("a", "a:solo", 1, "h")],
        [AttemptEnded("a", "a:solo", 2, Outcome(value=value)), StepClosed("a", 2, Status.SUCCEEDED, artifact=value)],
    ]


def test_a_large_value_is_stored_once_beside_the_journal_and_comes_back(store):
    state = append(store, *history(LARGE))
    assert state.steps["a"].artifact == LARGE
    ended, closed = (entry.event for entry in list(store.read(RUN))[3:])
    assert ended.outcome.value is None
    assert ended.outcome.blob == closed.blob
    assert len(store.get_blob(closed.blob)) > 1_000_000
    again = replay(store, RUN, PLAN)
    assert again.steps["a"].artifact == LARGE
    assert isinstance(again.steps["a"].artifact["whole"], float)
    assert again.steps["a"].attempts["a:solo", 0].outcome.value == LARGE


def test_a_reader_that_only_shows_does_not_fetch_it(store):
    append(store, *history(LARGE))
    state = replay(store, RUN, PLAN, whole=False)
    assert state.steps["a"].artifact is None
    assert state.steps["a"].blob


def test_a_small_value_stays_in_the_journal(store):
    append(store, *history("v"))
    assert next(store.read(RUN, 3)).event.outcome.value == "v"


def test_a_lost_large_value_is_no_null(store):
    append(store, *history(LARGE))
    store._blobs.clear()
    with pytest.raises(CorruptJournal):
        replay(store, RUN, PLAN)


def test_of_two_drivers_one_loses(store):
    append(store, *history("v"))
    state = State(RUN, PLAN)
    fold(state, DriverStarted(1, "late"))
    with pytest.raises(JournalConflict):
        Journal(store, RUN, 0).append([DriverStarted(1, "late")], state)
    assert len(list(store.read(RUN))) == 5


def test_the_summary_is_written_with_the_events(store):
    append(store, *history("v"))
    assert store.load(RUN).summary.updated_at == 2
