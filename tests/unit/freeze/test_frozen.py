"""Freezing resolves widths and timeouts once, and says what is not configured (akm facts 3.8, 3.9, 9.2)."""

from __future__ import annotations

import pytest

from flowstone.errors import ConfigError, FreezeError
from flowstone.freeze.frozen import freeze
from flowstone.plan.codec import decode_plan
from flowstone.plan.model import Gate, SourceFile, Unit
from flowstone.plan.units import AssetTarget, PromptTarget, SleepSpec
from flowstone.ports.catalog import EngineConfig
from flowstone.testing.plans import command, dag, fan_out, solo, spine


def frozen(plan, **config):
    return freeze(plan, EngineConfig(**config))


def test_the_text_is_the_plan_and_the_hash_that_of_the_text():
    one = frozen(spine(solo("a")))
    assert decode_plan(one.text) == one.plan
    assert one.hash == frozen(spine(solo("a"))).hash
    assert one.hash != frozen(spine(solo("b"))).hash


@pytest.mark.parametrize(
    ("own", "configured", "width"),
    [(None, None, 4), (None, 7, 7), (3, 7, 3), (1, 7, 1), (None, 1, 1), (None, 100, 64), (None, 0, 1)],
)
def test_a_map_freezes_its_own_width_else_the_configured_else_four(own, configured, width):
    plan = frozen(spine(fan_out("m", "params.l", width=own)), map_width=configured).plan
    assert plan.steps[0].action.width == width


@pytest.mark.parametrize(
    ("concurrency", "host", "width"), [(None, 2, 2), (9, 2, 9), (1, 8, 1), (100, 2, 64), (None, None, None)]
)
def test_the_width_of_all_steps_is_the_configured_else_the_machines(concurrency, host, width):
    plan = frozen(spine(solo("a")), max_concurrency=concurrency, host_concurrency=host).plan
    assert plan.limits.step_width == width


def test_a_dag_freezes_no_width_of_the_machine():
    plan = frozen(dag(solo("a"), width=3), max_concurrency=9, host_concurrency=2).plan
    assert (plan.limits.step_width, plan.limits.run_width) == (None, 3)


@pytest.mark.parametrize(
    ("unit", "timeout"),
    [
        (command("a"), 600_000),
        (command("a", timeout_ms=5, timeout_set=True), 5),
        (command("a", timeout_ms=None, timeout_set=True), None),
    ],
)
def test_a_command_has_ten_minutes_unless_something_else_is_written(unit, timeout):
    assert frozen(spine(solo("a", unit=unit))).plan.steps[0].unit.timeout_ms == timeout


def test_the_schema_of_a_solo_step_types_its_unit():
    schema = {"type": "object"}
    unit = frozen(spine(solo("a", schema=schema, has_schema=True))).plan.steps[0].unit
    assert (unit.has_schema, unit.schema) == (True, schema)
    own = command("a", schema={"type": "array"}, has_schema=True)
    kept = frozen(spine(solo("a", unit=own, schema=schema, has_schema=True))).plan.steps[0].unit
    assert kept.schema == {"type": "array"}
    mapped = frozen(spine(fan_out("m", "params.l", schema=schema, has_schema=True))).plan.steps[0].unit
    assert not mapped.has_schema


def test_other_units_stay_as_they_are():
    from flowstone.expr.model import Literal

    unit = Unit(SleepSpec(Literal("1s")), timeout_ms=600_000, timeout_set=True)
    assert frozen(dag(solo("a", unit=unit))).plan.steps[0].unit == unit


@pytest.mark.parametrize(
    ("target", "config", "problem"),
    [
        (PromptTarget("do"), {}, 'Step "a" needs an engine: none is selected'),
        (PromptTarget("do", engine="x"), {}, 'Engine "x" is not configured. Step "a" needs it.'),
        (PromptTarget("do"), {"default_engine": "x"}, 'Engine "x" is not configured. Step "a" needs it.'),
        (PromptTarget("do", engine="x"), {"engines": {"x": {}}}, 'Engine "x" has no kind. Step "a" needs it.'),
        (PromptTarget("do", engine="x"), {"engines": {"x": {"kind": "llm"}}}, 'Engine "x" has no endpoint.'),
    ],
)
def test_instructions_without_an_engine_say_what_is_not_configured(target, config, problem):
    with pytest.raises(ConfigError) as caught:
        frozen(spine(solo("a", unit=Unit(target))), **config)
    assert problem in caught.value.message
    assert caught.value.hint


def test_an_asset_is_refused_by_name():
    with pytest.raises(FreezeError, match='Step "a" uses commands/x') as caught:
        frozen(spine(solo("a", unit=Unit(AssetTarget("commands/x")))))
    assert caught.value.code == "COMPOSITION_INVALID"


def test_a_rubric_needs_a_judge_and_no_rubric_needs_none():
    assert frozen(spine(solo("a", gate=Gate(max_loops=2)))).plan.steps[0].gate == Gate(max_loops=2)
    with pytest.raises(ConfigError, match="no judge is configured"):
        frozen(spine(solo("a", gate=Gate("good?"))))


def test_the_source_is_read_set_and_stays():
    source = SourceFile("flow.md", "sha256:0", 10)
    plan = frozen(spine(solo("a"), source=source)).plan
    assert plan.read_set == (source,)
    more = (source, SourceFile("child.md", "sha256:1", 5))
    assert frozen(spine(solo("a"), source=source, read_set=more)).plan.read_set == more
