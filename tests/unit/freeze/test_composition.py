"""Composed workflows frozen into their parents: limits, the way in messages, exports (akm facts 3.1, 20)."""

from __future__ import annotations

import msgspec
import pytest

from flowstone.errors import FreezeError, PlanVersionError
from flowstone.expr.model import Literal, Record
from flowstone.freeze.composition import Composition
from flowstone.freeze.frozen import freeze
from flowstone.plan.checks.nesting import embedded_bytes
from flowstone.plan.codec import decode_plan, encode_plan
from flowstone.plan.model import ChildRule, Param, Plan, Policies, Single, SourceFile, Unit
from flowstone.plan.units import AssetTarget, ChildSpec, ExecSpec
from flowstone.ports.catalog import EngineConfig
from flowstone.ports.library import StoredTask, StoredWorkflow
from flowstone.testing.plans import export, ref, solo, spine
from flowstone.values import canonical_bytes

BY_HAND = Policies(children=ChildRule.BY_HAND)


class Shelf:
    """A library of plans by name; tasks run the workflow of the same name."""

    def __init__(self, **plans: Plan) -> None:
        self.plans = plans
        self.asked: list[str] = []

    def workflow(self, ref: str) -> StoredWorkflow:
        self.asked.append(ref)
        name = ref.rpartition("/")[2]
        source = SourceFile(f"/{name}.yml", name * 3, 9)
        return StoredWorkflow(f"b//workflows/{name}", msgspec.structs.replace(self.plans[name], source=source))

    def task(self, ref: str) -> StoredTask:
        name = ref.rpartition("/")[2]
        return StoredTask(
            f"b//tasks/{name}", self.plans[name], SourceFile(f"/t-{name}.yml", name, 9), f"workflows/{name}"
        )


def using(*refs: str, **arguments) -> Plan:
    """A plan whose steps compose these refs."""
    steps = [
        solo(f"s{place}", unit=Unit(AssetTarget(name, arguments or None, bool(arguments))))
        for place, name in enumerate(refs)
    ]
    return msgspec.structs.replace(spine(*steps), policies=BY_HAND)


def frozen(plan: Plan, shelf: Shelf, root: str = "b//workflows/root") -> Plan:
    return freeze(plan, EngineConfig(), None, Composition(shelf, root)).plan


def chain(levels: int) -> Shelf:
    plans = {f"c{n}": using(f"workflows/c{n + 1}") for n in range(1, levels)}
    return Shelf(**plans, **{f"c{levels}": spine(solo("leaf"))})


def test_eight_levels_freeze_and_a_ninth_does_not():
    plan = frozen(using("workflows/c1"), chain(8))
    assert decode_plan(encode_plan(plan)) == plan
    with pytest.raises(FreezeError) as refused:
        frozen(using("workflows/c1"), chain(9))
    assert refused.value.code == "COMPOSITION_INVALID"
    way = " -> ".join(["b//workflows/root", *(f"b//workflows/c{n}" for n in range(1, 10))])
    assert refused.value.message == (
        f"Workflow step s0 cannot compose b//workflows/c9: workflow composition is limited to 8 levels. Path: {way}."
    )


def test_a_cycle_by_way_of_a_task_shows_the_task():
    shelf = Shelf(a=using("tasks/root"), root=using("workflows/a"))
    with pytest.raises(FreezeError) as refused:
        frozen(using("workflows/a"), shelf)
    assert refused.value.message == (
        "Workflow step s0 cannot compose b//workflows/root: that would create a composition cycle. "
        "Path: b//workflows/root -> b//workflows/a -> b//tasks/root -> b//workflows/root."
    )


def test_a_cycle_is_told_before_its_depth_and_before_what_is_bound():
    shelf = chain(8)
    shelf.plans["c8"] = using("workflows/c1", nonsense=1)
    with pytest.raises(FreezeError, match="cycle"):
        frozen(using("workflows/c1"), shelf)


def test_all_embedded_plans_have_a_mebibyte_together():
    kid = spine(solo("k", instructions="x" * 300_000))
    plan = frozen(using(*["workflows/kid"] * 3), Shelf(kid=kid))
    size = embedded_bytes(msgspec.convert(plan.steps[0].unit.spec.plan, Plan))
    with pytest.raises(FreezeError) as refused:
        frozen(using(*["workflows/kid"] * 4), Shelf(kid=kid))
    assert f"would total {4 * size} bytes, over the 1048576-byte limit for one workflow run" in refused.value.message


def test_a_child_of_a_child_counts_in_both():
    shelf = Shelf(mid=using("workflows/kid"), kid=spine(solo("k", instructions="x" * 525_000)))
    with pytest.raises(FreezeError, match="over the 1048576-byte limit"):
        frozen(using("workflows/mid"), shelf)


def test_a_stored_plan_whose_family_is_too_large_is_refused():
    plan = frozen(using("workflows/kid"), Shelf(kid=spine(solo("k"))))
    large = msgspec.to_builtins(spine(solo("k", instructions="x" * 1_100_000)))
    action = plan.steps[0].action
    assert isinstance(action, Single)
    spec = msgspec.structs.replace(action.unit.spec, plan=large)
    unit = msgspec.structs.replace(action.unit, spec=spec)
    altered = msgspec.structs.replace(plan, steps=(msgspec.structs.replace(plan.steps[0], action=Single(unit)),))
    with pytest.raises(PlanVersionError, match="the nested plans have more than 1048576 bytes"):
        decode_plan(encode_plan(altered))


def test_the_read_set_is_that_of_the_whole_family_each_file_once():
    shelf = Shelf(mid=using("workflows/kid", "tasks/kid"), kid=spine(solo("k")))
    plan = frozen(using("workflows/mid", "workflows/kid"), shelf)
    assert [file.path for file in plan.read_set] == ["/mid.yml", "/kid.yml", "/t-kid.yml"]
    child = plan.steps[1].unit.spec
    assert [file["path"] for file in child.plan["read_set"]] == ["/kid.yml"]


def test_the_child_is_frozen_and_its_hash_noted():
    plan = frozen(
        using("workflows/kid", n=1), Shelf(kid=msgspec.structs.replace(spine(solo("k")), params=(Param("n"),)))
    )
    spec = plan.steps[0].unit.spec
    assert isinstance(spec, ChildSpec)
    assert (spec.ref, spec.arguments) == ("b//workflows/kid", Record((("n", Literal(1)),)))
    inner = msgspec.convert(spec.plan, Plan, strict=True)
    assert isinstance(inner.steps[0].unit.spec, ExecSpec)
    assert len(spec.hash) == 64
    assert canonical_bytes(spec.plan)


def test_references_into_exports_are_checked_and_deeper_ones_are_not():
    kid = msgspec.structs.replace(spine(solo("k")), outputs=(export("n", "steps.k.output"),))
    for good in ("steps.s0.output", "steps.s0.output.n", "steps.s0.output.n.deep"):
        assert frozen(reading(good), Shelf(kid=kid, bare=kid))
    with pytest.raises(FreezeError) as refused:
        frozen(reading("steps.s0.output.zz"), Shelf(kid=kid))
    assert refused.value.code == "COMPOSITION_INVALID"
    assert refused.value.message.endswith('exports no "zz"; it exports: n.')
    with pytest.raises(FreezeError, match="it exports: runId, status"):
        frozen(reading("steps.s0.output.n"), Shelf(kid=spine(solo("k"))))


def reading(text: str) -> Plan:
    """A step that composes `kid`, and one behind it that reads a reference."""
    first = using("workflows/kid").steps[0]
    plan = spine(first, solo("z", inputs=(ref(text),)))
    return msgspec.structs.replace(plan, policies=BY_HAND)
