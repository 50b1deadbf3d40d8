"""Small builders of plans: a spine that halts, a DAG that isolates, and the steps that they hold."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from flowstone.expr.model import Cel, Reference
from flowstone.expr.refs import parse_reference
from flowstone.plan.model import (
    Branch,
    Budget,
    FanOut,
    HashRule,
    Limits,
    OnError,
    OnFailure,
    OnOutputError,
    Output,
    Plan,
    Policies,
    Poll,
    Reducer,
    ResumeRule,
    Retry,
    Route,
    Single,
    Step,
    Unit,
)
from flowstone.plan.units import EnvironmentRule, ExecSpec

SPINE = Policies(hashing=HashRule("flow.unit\0v1\0", 7))
DAG = Policies(
    on_failure=OnFailure.ISOLATE,
    resume=ResumeRule.SAME_SOURCE,
    on_output_error=OnOutputError.FAIL_RUN,
    empty_text_absent=False,
    reuse_units=False,
    unit_cap=None,
)


def spine(*steps: Step, **fields: Any) -> Plan:
    """A plan whose steps follow one another; a failure halts it, completed units are reused.

    Route targets get their `selected_by` here. `width` is the steps' frozen width (64).
    """
    limits = Limits(step_width=fields.pop("width", 64))
    chained = []
    for place, step in enumerate(steps):
        needs = (steps[place - 1].id,) if place else ()
        chained.append(msgspec.structs.replace(step, needs=needs, selected_by=_routers(steps, step.id)))
    return Plan("spine", "flow", tuple(chained), **{"policies": SPINE, "limits": limits, **fields})


def dag(*steps: Step, **fields: Any) -> Plan:
    """A plan whose steps name their needs; a failure blocks its dependents only."""
    limits = Limits(run_width=fields.pop("width", None), default_run_width=4, host_capped=False)
    return Plan("dag", "flow", steps, **{"policies": DAG, "limits": limits, **fields})


def command(*argv: str, **fields: Any) -> Unit:
    """A unit that runs a command; the context variables begin with `FLOW_`."""
    return Unit(ExecSpec(argv or ("true",), environment=EnvironmentRule(context="FLOW_")), **fields)


def solo(step_id: str, *argv: str, unit: Unit | None = None, **fields: Any) -> Step:
    """A step of one unit."""
    return Step(step_id, Single(unit or command(*(argv or (step_id,)))), **fields)


def fan_out(step_id: str, over: str, *, width: int | None = None, vote: bool = False, **fields: Any) -> Step:
    """A step of one unit for each item that `over` names."""
    reducer = Reducer.VOTE if vote else Reducer.COLLECT
    unit = fields.pop("unit", None) or command(step_id)
    return Step(step_id, FanOut(ref(over), unit, width, reducer), **fields)


def route(step_id: str, value: str, branches: dict[str, str], default: str | None = None, **fields: Any) -> Step:
    """A step that selects one of the later steps by a value."""
    listed = tuple(Branch(match, step) for match, step in branches.items())
    return Step(step_id, Route(ref(value), listed, default), **fields)


def tolerant(step: Step) -> Step:
    """The same step, whose failed units do not fail it."""
    return msgspec.structs.replace(step, on_error=OnError.CONTINUE)


def retry(extra: int, *reasons: str, base_ms: int = 0, exponential: bool = False) -> Retry:
    return Retry(extra, reasons or None, base_ms, exponential)


def poll(until: str, interval_ms: int = 100, timeout_ms: int = 1_000) -> Poll:
    """A poll whose `until` may read the result of the attempt and its number."""
    return Poll(interval_ms, timeout_ms, cel(until), f"{interval_ms}ms", f"{timeout_ms}ms")


def export(name: str, reference: str, schema: Any = None) -> Output:
    """A workflow output that a reference reads."""
    return Output(name, ref(reference), schema, schema is not None)


def computed(name: str, source: str) -> Output:
    """An output that an expression computes."""
    return Output(name, cel(source))


def cel(source: str) -> Cel:
    """A compiled CEL expression; one that does not compile raises ValueError."""
    from flowstone.expr.cel import POLL_UNTIL, CelRefused, compile_cel

    compiled = compile_cel(source, POLL_UNTIL)
    if isinstance(compiled, CelRefused):
        raise ValueError(compiled.problems[0].message)
    return compiled.model


def ref(text: str) -> Reference:
    return parse_reference(text)


def budget(max_units: int | None = None, max_tokens: int | None = None) -> Budget:
    return Budget(max_units, max_tokens)


def _routers(steps: Sequence[Step], target: str) -> tuple[str, ...]:
    return tuple(
        step.id
        for step in steps
        if isinstance(step.action, Route)
        and target in {*(branch.step for branch in step.action.branches), step.action.default}
    )
