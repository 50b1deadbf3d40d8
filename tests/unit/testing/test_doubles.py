from __future__ import annotations

import pytest

from flowstone.run.events import StepOpened
from flowstone.run.record import RunSummary
from flowstone.stores.memory import MemoryStore
from flowstone.testing.clock import FakeClock
from flowstone.testing.crashing_store import Crash, CrashingStore, When
from flowstone.testing.store_contract import RUN, record


@pytest.mark.parametrize(("when", "left"), [(When.BEFORE, 1), (When.AFTER, 2)])
def test_a_store_dies_at_the_chosen_append(when, left):
    store = MemoryStore()
    dying = CrashingStore(store, 2, when)
    dying.create(record(), RunSummary())
    dying.lease(RUN, "me")
    assert dying.append(RUN, 0, [StepOpened("a", 1)], RunSummary()) == 1
    with pytest.raises(Crash, match=f"{when} append 2"):
        dying.append(RUN, 1, [StepOpened("b", 1)], RunSummary())
    assert len(list(store.read(RUN))) == left
    for call in (lambda: dying.load(RUN), lambda: dying.append(RUN, left, [], RunSummary())):
        with pytest.raises(Crash, match="dead"):
            call()
    store.lease(RUN, "the next").release()


def test_a_store_that_does_not_come_to_its_append_lives():
    store = CrashingStore(MemoryStore(), 9, When.BEFORE)
    store.create(record(), RunSummary())
    store.append(RUN, 0, [StepOpened("a", 1)], RunSummary())
    assert store.appends == 1
    assert [row.record.id for row in store.find(limit=1)] == [RUN]


def test_a_fake_clock_moves_only_when_told():
    clock = FakeClock(now=5, jitter_value=0.5)
    assert (clock.now_ms(), clock.now_ms(), clock.jitter()) == (5, 5, 0.5)
    assert clock.advance(10) == clock.now_ms() == 15
    assert clock.new_id()[:8] == "00000001"
    assert clock.new_id()[:8] == "00000002"
    with pytest.raises(ValueError, match="backwards"):
        clock.advance(-1)
