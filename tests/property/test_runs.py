"""Random plans, random outcomes, random crashes: a run that was killed ends where one ends that was not."""

from __future__ import annotations

import tempfile
from pathlib import Path
from unittest import mock

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from flowstone.plan.codec import decode_plan, encode_plan
from flowstone.plan.model import FanOut, OnFailure
from flowstone.run.events import RunStatus, Status, StepClosed, StepOpened
from flowstone.scheduler.decide import decide
from flowstone.stores.registry import open_store
from flowstone.testing.crashing_store import When
from tests.crashing import check_journal, crash, finish, result, uninterrupted
from tests.driving import RUN, Bench, shown
from tests.property.generators import params_of, plans, scripts

MANY = settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True)
SOME = settings(MANY, max_examples=15)


@MANY
@given(st.data())
def test_a_run_keeps_its_rules(data):
    plan = data.draw(plans())
    bench = Bench(plan, data.draw(scripts(plan)), params_of(plan))
    with mock.patch("flowstone.drivers.local.decide", _decide_twice):
        report = bench.drive()
    check_journal(bench)
    _check_width(bench)
    _check_failures(bench)
    assert shown(report.state) == shown(bench.state), "the journal gives another state than the drive had"
    assert report.state.running == 0
    if report.end.problem is None:
        assert bench.state.status is not RunStatus.ACTIVE, "the drive stopped short"


@MANY
@given(st.data())
def test_a_killed_run_ends_where_an_undisturbed_one_ends(data):
    plan = data.draw(plans())
    _kill_and_compare(data, plan, lambda: open_store("memory", ""))


@pytest.mark.parametrize("name", ["sqlite", "directory"])
def test_it_does_on_every_store_in_files(name):
    @SOME
    @given(st.data())
    def on_files(data):
        plan = data.draw(plans())
        with tempfile.TemporaryDirectory() as folder:
            number = iter(range(1_000))
            stores = []

            def opened():
                stores.append(open_store(name, str(Path(folder, f"{next(number)}"))))
                return stores[-1]

            try:
                _kill_and_compare(data, plan, opened)
            finally:
                for store in stores:
                    store.close()

    on_files()


@MANY
@given(st.data())
def test_a_resume_after_failures_only_runs_what_did_not_succeed(data):
    plan = data.draw(plans())
    bench = Bench(plan, data.draw(scripts(plan)), params_of(plan))
    bench.drive()
    if bench.state.status is not RunStatus.FAILED:
        return
    done = {step.id for step in bench.state.order if step.status in (Status.SUCCEEDED, Status.SKIPPED)}
    halting = plan.policies.on_failure is OnFailure.HALT
    bench.resume()
    assert not done & set(bench.dispatcher.steps())
    if halting:
        assert shown(bench.reports[-1].state) == shown(bench.state)


@MANY
@given(plans())
def test_a_plan_is_the_same_after_a_round_trip(plan):
    text = encode_plan(plan)
    assert decode_plan(text) == plan
    assert encode_plan(decode_plan(text)) == text


def _kill_and_compare(data, plan, opened):
    script = data.draw(scripts(plan))
    params = params_of(plan)
    expected, appends = uninterrupted(plan, script, params, opened())
    bench = Bench(plan, script, params, opened())
    for _ in range(data.draw(st.integers(1, 3))):
        crash(bench, data.draw(st.integers(1, appends)), data.draw(st.sampled_from(When)))
    finish(bench)
    assert result(bench) == expected


def _decide_twice(state, facts, now, redact):
    """A second decision on the same state at the same time decides nothing."""
    decision = decide(state, facts, now, redact)
    if decision.refusal is None:
        again = decide(state, facts, now, redact)
        assert (again.events, again.dispatches) == ([], [])
        assert again.wake_at == decision.wake_at
        assert decision.wake_at is None or decision.wake_at > now
    return decision


def _check_width(bench):
    limits = bench.plan.limits
    for step in bench.plan.steps:
        if isinstance(step.action, FanOut):
            assert bench.dispatcher.most_running[step.id] <= min(step.action.width, limits.step_width)
    if limits.run_width is not None:
        assert bench.dispatcher.most_running[""] <= limits.run_width


def _check_failures(bench):
    if bench.plan.policies.on_failure is not OnFailure.HALT:
        return
    failed = False
    for entry in bench.store.read(RUN):
        if isinstance(entry.event, StepOpened):
            assert not failed, "a step was opened after the failure that halts the run"
        failed |= isinstance(entry.event, StepClosed) and entry.event.status is Status.FAILED
