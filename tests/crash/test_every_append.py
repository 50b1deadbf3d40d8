"""A driver that dies before or after any of its appends, on any store: the next one brings the same end."""

from __future__ import annotations

import pytest

from flowstone.errors import CorruptJournal
from flowstone.stores.registry import OPENERS, open_store
from flowstone.testing.crashing_store import Crash, CrashingStore, When
from tests.crash.scenarios import SCENARIOS, a_large_artifact
from tests.crashing import crash, crash_at_every_append, finish, result
from tests.driving import Bench


@pytest.mark.parametrize("scenario", SCENARIOS)
@pytest.mark.parametrize("name", sorted(OPENERS))
def test_every_append_of_every_scenario(opened, name, scenario):
    assert crash_at_every_append(*SCENARIOS[scenario](), lambda: opened(name)) >= 6


@pytest.mark.parametrize("scenario", ["a_map_with_retry", "a_dag_with_poll"])
def test_crash_after_crash(opened, scenario):
    """Each driver lives for one append only, and still the run comes to its end."""
    plan, script, params = SCENARIOS[scenario]()
    expected = Bench(plan, script, params, opened("memory"))
    expected.drive()
    bench = Bench(plan, script, params, opened("sqlite"))
    for number in range(1, 40):
        if not crash(bench, 1 + number % 9, When.AFTER):
            break
    finish(bench)
    assert result(bench) == result(expected)


def test_a_crash_between_the_outcome_and_the_news_loses_no_blob(opened):
    plan, script, params = a_large_artifact()
    store = opened("sqlite")
    bench = Bench(plan, script, params, store)
    with pytest.raises(Crash):
        bench.drive(store=CrashingStore(store, 2, When.AFTER))
    bench.drive()
    assert bench.artifact("a") == "ä" * 800_000
    assert bench.dispatcher.steps() == ["b", "c"]
    inputs = dict(bench.dispatcher.asked[0].context)["FLOW_INPUTS"]
    assert len(inputs) > 800_000


def test_a_lost_blob_fails_loudly(tmp_path):
    plan, script, params = a_large_artifact()
    store = open_store("sqlite", str(tmp_path / "state.db"))
    bench = Bench(plan, script, params, store)
    with pytest.raises(Crash):
        bench.drive(store=CrashingStore(store, 2, When.AFTER))
    for blob in (file for file in (tmp_path / "blobs").rglob("*") if file.is_file()):
        blob.unlink()
    with pytest.raises(CorruptJournal):
        bench.drive()
    assert bench.dispatcher.asked == []
    store.close()
