"""A job that waits for an approval, killed at every append and while it waits; two drivers at one question."""

from __future__ import annotations

import threading

import pytest

from flowstone.errors import LeaseHeld
from flowstone.run.events import AttemptEnded, RunStatus
from flowstone.stores.registry import OPENERS
from flowstone.testing.crashing_store import When
from tests.asking import AskingBench
from tests.crashing import crash, result
from tests.driving import RUN

HOUR = 3_600_000


@pytest.mark.parametrize("when", When)
@pytest.mark.parametrize("name", sorted(OPENERS))
def test_a_driver_that_dies_at_any_append_is_followed_by_one_that_finds_the_answer(opened, name, when):
    expected = AskingBench(opened(name), answers_at_once=True, timeout_ms=HOUR)
    expected.drive()
    assert expected.state.status is RunStatus.SUCCEEDED
    for nth in range(1, 20):
        bench = AskingBench(opened(name), answers_at_once=True, timeout_ms=HOUR)
        died = crash(bench, nth, when)
        if bench.state.status is RunStatus.ACTIVE:
            bench.drive()
        assert result(bench) == result(expected)
        assert len([event for event in bench.events(AttemptEnded) if event.step == "ok"]) == 1
        if not died:
            break
    assert nth > 3


@pytest.mark.parametrize("name", sorted(OPENERS))
def test_a_refusal_survives_the_driver(opened, name):
    bench = AskingBench(opened(name), timeout_ms=HOUR)
    bench.die_while_asking()
    bench.answer(approved=False)
    crash(bench, 2, When.BEFORE)
    bench.drive()
    assert bench.state.status is RunStatus.FAILED
    assert bench.step("ok").error == "rejected by ada"


@pytest.mark.parametrize("name", sorted(OPENERS))
def test_of_many_answers_at_once_one_stands(opened, name):
    bench = AskingBench(opened(name), timeout_ms=HOUR)
    bench.die_while_asking()
    answers = [bench.answer(approved=number % 2 == 0, note=str(number)) for number in range(8)]
    assert {answer.value["note"] for answer in answers} == {"0"}


def test_two_drivers_at_one_question(opened):
    """The second one is told who waits, and the first one goes on as if nothing had been."""
    store = opened("sqlite")
    bench = AskingBench(store, timeout_ms=HOUR)
    bench.die_while_asking()
    with_lease = store.lease(RUN, "pid 1")
    refused = []

    def second() -> None:
        try:
            bench.drive()
        except LeaseHeld as error:
            refused.append(error.holder)

    thread = threading.Thread(target=second)
    thread.start()
    thread.join()
    assert len(refused) == 1
    bench.answer()
    with_lease.release()
    bench.drive()
    assert bench.state.status is RunStatus.SUCCEEDED
