"""The frozen plan as text: canonical, strict, bounded (akm reference, "Bounds"; irVersion 5)."""

from __future__ import annotations

import pytest

from flowstone.errors import PlanVersionError
from flowstone.plan.codec import decode_plan, encode_plan, plan_hash
from flowstone.plan.units import AssetTarget, PromptTarget
from flowstone.testing.plans import command, dag, fan_out, poll, retry, route, solo, spine
from flowstone.values import canonical_json, decode_json, sha256_hex


def built(plan):
    return decode_json(encode_plan(plan), whole_floats=False)


def test_equal_plans_have_equal_texts_and_hashes():
    one, other = (spine(solo("a"), fan_out("b", "steps.a.output")) for _ in range(2))
    assert encode_plan(one) == encode_plan(other)
    assert plan_hash(encode_plan(one)) == sha256_hex(encode_plan(other))
    assert encode_plan(one) == canonical_json(built(one))


@pytest.mark.parametrize(
    "plan",
    [
        spine(
            solo("a", schema={"type": "object"}, has_schema=True),
            route("r", "params.x", {"1": "b"}, "c"),
            solo("b"),
            solo("c"),
        ),
        dag(
            solo("a", repeat=poll("exitCode == 0")),
            solo("b", needs=("a",), repeat=retry(2, base_ms=5, exponential=True)),
        ),
        spine(solo("a", unit=command("x", timeout_ms=None, timeout_set=True, isolation="worktree"))),
    ],
)
def test_a_plan_comes_back_as_it_was(plan):
    assert decode_plan(encode_plan(plan)) == plan


def test_numbers_keep_their_kind():
    plan = spine(solo("a", schema={"type": "number", "minimum": 1.0, "maximum": 2**70}, has_schema=True))
    schema = decode_plan(encode_plan(plan)).steps[0].schema
    assert isinstance(schema["minimum"], float)
    assert schema["maximum"] == 2**70


@pytest.mark.parametrize("version", [4, 6, None, "5", 5.5, True, [5]])
def test_another_version_is_refused_with_what_to_do(version):
    plan = built(spine(solo("a")))
    plan["ir_version"] = version
    with pytest.raises(PlanVersionError, match="irVersion") as caught:
        decode_plan(canonical_json(plan))
    assert "new run" in caught.value.hint


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (lambda p: p.update(extra=1), "unknown field"),
        (lambda p: p["steps"][0].update(colour="red"), "unknown field"),
        (lambda p: p["steps"][0]["action"]["unit"].update(timeout_ms="5"), "Expected"),
        (lambda p: p["steps"][0]["action"]["unit"].update(timeout_ms=True), "Expected"),
        (lambda p: p["steps"][0]["action"]["unit"].update(timeout_ms=0), "positive"),
        (lambda p: p["steps"][0]["action"].update(type="loop"), "Invalid"),
        (lambda p: p.update(steps=[]), "at least one step"),
        (lambda p: p["steps"].append(p["steps"][0]), "used twice"),
        (lambda p: p["steps"][0].update(id="a.b"), "characters"),
        (lambda p: p["steps"][0].update(needs=["nobody"]), "unknown step"),
        (lambda p: p["steps"][0].update(needs=["a"]), "cycle"),
        (lambda p: p["steps"][0].update(needs=["b"]), "cycle"),
        (lambda p: p["steps"][0]["action"]["unit"]["spec"].update(argv=[]), "at least one argument"),
        (lambda p: p["steps"][0].update(selected_by=["b"]), "no route"),
        (lambda p: p["steps"][0].update(inputs=[{"type": "reference", "text": "", "root": "steps", "name": "b"}]), "before"),
        (lambda p: p["steps"][0].update(schema={"type": "strig"}, has_schema=True), "strig"),
        (lambda p: p["steps"][0].update(schema={"required": 5}, has_schema=True), "required"),
        (lambda p: p["steps"][0].update(repeat={"type": "retry", "extra": -1}), "negative"),
        (lambda p: p["steps"][0].update(repeat={"type": "retry", "extra": 1_000_001}), "more than 1000000"),
        (lambda p: p["steps"][0].update(gate={"max_loops": 101}), "max_loops"),
        (lambda p: p.update(budget={"max_units": 10_001}), "max_units"),
        (lambda p: p.update(budget={"max_units": 0}), "max_units"),
        (
            lambda p: p.update(outputs=[{"name": "o", "value": {"type": "reference", "text": "", "root": "steps", "name": "x"}}]),
            "unknown step",
        ),
    ],
)  # fmt: skip
def test_what_was_altered_is_refused_and_named(change, problem):
    plan = built(spine(solo("a"), solo("b")))
    change(plan)
    with pytest.raises(PlanVersionError, match="damaged") as caught:
        decode_plan(canonical_json(plan))
    assert problem in caught.value.message


@pytest.mark.parametrize("text", ["", "null", "[]", "5", "{}", '{"ir_version":5}', "{", '{"ir_version":5} x', "\ud800"])
def test_what_is_no_plan_is_refused(text):
    with pytest.raises(PlanVersionError):
        decode_plan(text)


def test_a_route_selects_later_steps_that_wait_for_it():
    plan = built(spine(solo("a"), route("r", "params.x", {"1": "b"}), solo("b")))
    for target in ("a", "r", "nobody"):
        altered = decode_json(canonical_json(plan))
        altered["steps"][1]["action"]["branches"][0]["step"] = target
        with pytest.raises(PlanVersionError):
            decode_plan(canonical_json(altered))


@pytest.mark.parametrize("spec", [PromptTarget("do"), AssetTarget("commands/x")])
def test_a_step_that_is_not_frozen_is_refused_but_can_be_shown(spec):
    from flowstone.plan.model import Unit

    text = encode_plan(spine(solo("a", unit=Unit(spec))))
    with pytest.raises(PlanVersionError, match='step "a" is not frozen'):
        decode_plan(text)
    assert decode_plan(text, check=False).steps[0].unit.spec == spec


def test_bounds():
    at_most = spine(*(solo(f"s{n}") for n in range(256)))
    assert len(decode_plan(encode_plan(at_most)).steps) == 256
    with pytest.raises(PlanVersionError, match="257 steps"):
        decode_plan(encode_plan(spine(*(solo(f"s{n}") for n in range(257)))))
    assert len(decode_plan(encode_plan(dag(*(solo(f"s{n}") for n in range(300))))).steps) == 300


def test_a_plan_of_more_than_two_mib_is_refused_both_ways():
    large = spine(*(solo(f"s{n}", instructions="x" * 250_000) for n in range(9)))
    with pytest.raises(PlanVersionError, match="at most 2097152") as caught:
        encode_plan(large)
    assert caught.value.code == "WORKFLOW_SOURCE_INVALID"
    with pytest.raises(PlanVersionError, match="more than 2097152"):
        decode_plan('{"ir_version":5,"name":"' + "x" * 2_100_000 + '"}')


@pytest.mark.parametrize("width", [0, 65, -1])
def test_a_width_beyond_its_bounds_is_refused(width):
    plan = built(spine(fan_out("m", "params.l", width=3)))
    plan["steps"][0]["action"]["width"] = width
    with pytest.raises(PlanVersionError, match="width"):
        decode_plan(canonical_json(plan))
