"""A run in time: units, waits between attempts, queues, and what a wide step leaves out."""

from flowstone.run.events import RunStatus, Status
from flowstone.testing.plans import dag, fan_out, solo, spine
from flowstone.views.timeline import BarKind, timeline
from flowstone.views.timeline_svg import timeline_svg
from tests.unit.views.journals import (
    T0,
    bad,
    closed,
    driver,
    ended,
    good,
    opened,
    ran,
    run_closed,
    started,
    state_of,
)


def test_a_retry_has_two_bars_and_a_wait_between():
    events = [
        driver(),
        opened("a", 10),
        started("a", 10),
        ended("a", 110, bad()),
        started("a", 310, number=1),
        ended("a", 400, good(), number=1),
        closed("a", 400),
        run_closed(400, RunStatus.SUCCEEDED),
    ]
    laid = timeline(state_of(spine(solo("a")), events), T0 + 9_999)
    assert laid.length == 400
    bars = [(bar.kind, bar.start, bar.end, bar.status) for bar in laid.rows[0].bars if bar.kind is not BarKind.QUEUE]
    assert bars == [
        (BarKind.UNIT, 10, 110, Status.FAILED),
        (BarKind.WAIT, 110, 310, Status.PENDING),
        (BarKind.UNIT, 310, 400, Status.SUCCEEDED),
    ]
    assert laid.rows[0].lanes == 1


def test_a_step_that_waits_for_a_slot_shows_a_queue():
    plan = dag(solo("a"), solo("b", needs=("a",)))
    events = [driver(), *ran("a", 0, 100), opened("b", 100), started("b", 250), ended("b", 300, good())]
    queue = timeline(state_of(plan, events), T0 + 300).rows[1].bars[0]
    assert (queue.kind, queue.start, queue.end) == (BarKind.QUEUE, 100, 250)


def test_a_running_unit_reaches_to_now():
    laid = timeline(state_of(spine(solo("a")), [driver(), opened("a", 5), started("a", 5)]), T0 + 77)
    assert (laid.rows[0].bars[-1].end, laid.rows[0].bars[-1].status) == (77, Status.OPEN)


def test_units_side_by_side_get_lanes():
    plan = spine(fan_out("m", "params.items"))
    events = [driver(), opened("m", 0, 3)]
    events += [started("m", 0, unit=f"u{n}", index=n) for n in range(2)]
    events += [ended("m", 50, good(), unit="u0"), started("m", 50, unit="u2", index=2)]
    row = timeline(state_of(plan, events), T0 + 60).rows[0]
    assert row.lanes == 2
    assert {bar.label: bar.lane for bar in row.bars if bar.kind is BarKind.UNIT} == {"u0": 0, "u1": 1, "u2": 0}


def test_a_wide_step_keeps_its_longest_bars():
    plan = spine(fan_out("m", "params.items"))
    events = [driver(), opened("m", 0, 5_000)]
    for n in range(5_000):
        events += [started("m", n, unit=f"u{n}", index=n), ended("m", n + 1 + n % 7, good(), unit=f"u{n}", index=n)]
    laid = timeline(state_of(plan, events), T0 + 6_000, bars=100)
    assert len(laid.rows[0].bars) == 100
    assert laid.rows[0].hidden == 4_900
    assert "(+4,900)" in timeline_svg(laid)


def test_the_picture_escapes_names():
    laid = timeline(state_of(spine(solo("a")), [driver(), opened("a", 0), started("a", 0, unit="<&>")]), T0 + 9)
    assert "&lt;&amp;&gt;: running" in timeline_svg(laid)


def test_a_run_that_never_started_has_empty_rows():
    laid = timeline(state_of(spine(solo("a")), []), T0)
    assert laid.length == 0
    assert laid.rows[0].bars == ()
    assert "<svg" in timeline_svg(laid)
