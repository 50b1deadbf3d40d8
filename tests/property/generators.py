"""Random small plans of both kinds and random outcomes of their attempts, for hypothesis."""

from __future__ import annotations

from typing import Any

import msgspec
from hypothesis import strategies as st

from flowstone.plan.model import Join, OnError, Plan
from flowstone.run.outcome import Outcome, Reason
from flowstone.testing.plans import cel, computed, dag, export, fan_out, poll, retry, route, solo, spine
from flowstone.testing.scripted_dispatcher import Script

PARAMS: dict[str, Any] = {"list": ["x", "y", "x"], "empty": [], "wide": [1, None, "1", {"a": 1}, 1], "pick": "x"}
REASONS = (Reason.NON_ZERO_EXIT, Reason.TIMEOUT, Reason.SPAWN_FAILED)
VALUES = ("v", 1, None, {"n": 1}, ["x", "y"])


@st.composite
def outcomes(draw: Any) -> Outcome:
    if draw(st.integers(0, 3)):
        return Outcome(value=draw(st.sampled_from(VALUES)), stdout="out", exit_code=0, tokens=1)
    reason = draw(st.sampled_from(REASONS))
    return Outcome(reason=reason, error=f"it failed: {reason}", exit_code=1, ran=reason is not Reason.SPAWN_FAILED)


@st.composite
def scripts(draw: Any, plan: Plan) -> Script:
    """Outcomes for the first attempts of each unit; what stays open succeeds."""
    script = Script()
    for step in plan.steps:
        for unit in range(draw(st.integers(0, 3))):
            for attempt in range(draw(st.integers(0, 2))):
                delay = draw(st.sampled_from((0, 0, 3, 40)))
                script.on(step.id, draw(outcomes()), unit=unit, attempt=attempt, delay_ms=delay)
    return script


@st.composite
def spines(draw: Any) -> Plan:
    """Solo steps, fan-outs and routes, one after the other; a failure halts."""
    names = [f"s{n}" for n in range(draw(st.integers(1, 6)))]
    steps = []
    for place, name in enumerate(names):
        fields: dict[str, Any] = {"on_error": draw(st.sampled_from(tuple(OnError))), "repeat": draw(retries())}
        kind = draw(st.sampled_from(("solo", "solo", "fan", "fan", "route")))
        later = names[place + 1 :]
        if kind == "route" and later:
            branches = {draw(st.sampled_from(("x", "v", "1"))): draw(st.sampled_from(later))}
            value = draw(st.sampled_from(("params.pick", *(f"steps.{n}.output" for n in names[:place]))))
            steps.append(route(name, value, branches, draw(st.sampled_from((None, *later)))))
        elif kind == "fan":
            over = ("params.list", "params.wide", "params.empty", *(f"steps.{n}.output" for n in names[:place]))
            vote = draw(st.integers(0, 3)) == 0
            width = draw(st.integers(1, 3))
            steps.append(fan_out(name, draw(st.sampled_from(over)), width=width, vote=vote, **fields))
        else:
            if draw(st.integers(0, 4)) == 0:
                fields |= {"schema": {"type": ["string", "null"]}, "has_schema": True}
            steps.append(solo(name, **fields))
    outputs = (export("o", f"steps.{draw(st.sampled_from(names))}.output"),) if draw(st.booleans()) else ()
    return spine(*steps, outputs=outputs, width=draw(st.sampled_from((2, 64))))


@st.composite
def dags(draw: Any) -> Plan:
    """Solo steps with needs, conditions, retries, polls and tolerance; failures stay in their branch."""
    names = [f"s{n}" for n in range(draw(st.integers(1, 7)))]
    steps = []
    for place, name in enumerate(names):
        before = names[:place]
        needs = tuple(draw(st.lists(st.sampled_from(before), unique=True, max_size=2))) if before else ()
        fields: dict[str, Any] = {"needs": needs, "repeat": draw(st.one_of(retries(), polls()))}
        if draw(st.integers(0, 2)) == 0:
            fields |= {"join": Join.ALL_ENDED, "tolerated": True}
        conditions = ["true", "false", "inputs.pick == 'x'", "inputs.pick"]
        conditions += [f"steps.{need}.{word}" for need in needs for word in ("failed", "skipped", "outputs.n == 1")]
        if draw(st.integers(0, 2)) == 0:
            fields["when"] = cel(draw(st.sampled_from(conditions)))
        if draw(st.booleans()):
            fields["outputs"] = (computed("n", draw(st.sampled_from(("1", "exitCode", "output.n", "stdout.size()")))),)
        steps.append(solo(name, **fields))
    outputs = (computed("o", f"steps.{draw(st.sampled_from(names))}.status"),) if draw(st.booleans()) else ()
    order = draw(st.permutations(steps))
    return dag(*order, outputs=outputs, width=draw(st.integers(1, 4)))


def plans() -> Any:
    return st.one_of(spines(), dags())


@st.composite
def retries(draw: Any) -> Any:
    extra = draw(st.integers(0, 2))
    reasons = draw(st.sampled_from(((), ("non_zero_exit", "timeout"))))
    return retry(extra, *reasons, base_ms=draw(st.sampled_from((0, 7))), exponential=draw(st.booleans()))


@st.composite
def polls(draw: Any) -> Any:
    until = draw(st.sampled_from(("exitCode == 0", "attempt == 2", "true", "output.n == 1", "stdout")))
    return poll(until, interval_ms=10, timeout_ms=35)


def params_of(plan: Plan) -> dict[str, Any]:
    return msgspec.convert(PARAMS, dict[str, Any])
