"""Inputs of orun runs: coercion by type, patterns, values, secrets, and what a resume allows."""

from __future__ import annotations

import pytest

from flowstone.errors import InputError
from flowstone.formats.orun.inputs import matches, pattern_problem, resolve_inputs
from flowstone.plan.model import Param


def refusal(param: Param, text: str | None = None, **more: object) -> str:
    with pytest.raises(InputError) as caught:
        resolve_inputs([param], {} if text is None else {param.name: text}, **more)
    return caught.value.message


@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [
        ("string", "007", "007"),
        ("string", "", ""),
        (None, "[1]", "[1]"),
        ("number", "5", 5),
        ("number", "1.50", 1.5),
        ("number", "-2e3", -2000.0),
        ("integer", "12", 12),
        ("integer", "2.0", 2),
        ("boolean", "true", True),
        ("boolean", "false", False),
        ("array", '[1,"b",null]', [1, "b", None]),
        ("object", '{"a":{"b":[]}}', {"a": {"b": []}}),
    ],
)
def test_text_becomes_a_value_of_the_declared_type(kind, text, value):
    found = resolve_inputs([Param("v", type=kind)], {"v": text})["v"]
    assert found == value
    assert type(found) is type(value)


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ("number", "abc"),
        ("number", "true"),
        ("number", "NaN"),
        ("number", "1 2"),
        ("integer", "1.5"),
        ("boolean", "yes"),
        ("boolean", "1"),
        ("array", '{"a":1}'),
        ("array", "a,b"),
        ("object", "[1]"),
        ("object", '{"a":'),
    ],
)
def test_text_of_another_kind_is_refused(kind, text):
    message = refusal(Param("v", type=kind), text)
    assert message.startswith("inputs.v: ")
    assert kind in message


def test_whole_numbers_are_integers_and_fractions_stay():
    assert isinstance(resolve_inputs([Param("v", type="number")], {"v": "5"})["v"], int)
    assert isinstance(resolve_inputs([Param("v", type="number")], {"v": "5.0"})["v"], float)


def test_a_missing_required_input_shows_its_description():
    assert refusal(Param("v", required=True)) == "inputs.v is required (--set v=...)"
    message = refusal(Param("v", required=True, description="what to ship"))
    assert message == "inputs.v is required (--set v=...): what to ship"


def test_defaults_fill_in_and_optional_ones_stay_away():
    params = [Param("a", has_default=True, default=3, required=True), Param("b")]
    assert resolve_inputs(params, {}) == {"a": 3}


def test_unknown_names_and_all_misfits_are_told_together():
    with pytest.raises(InputError) as caught:
        resolve_inputs([Param("v", type="number"), Param("w", required=True)], {"v": "x", "zz": "1"})
    lines = caught.value.message.split("\n")
    assert lines[0].startswith('unknown input "zz"')
    assert [line.split(" ")[0].rstrip(":") for line in lines[1:]] == ["inputs.v", "inputs.w"]


def test_values_and_patterns():
    assert refusal(Param("e", type="string", values=("dev", "prod")), "test") == 'inputs.e: "test" not in [dev prod]'
    assert refusal(Param("n", type="number", values=(1, 2)), "3") == 'inputs.n: "3" not in [1 2]'
    assert resolve_inputs([Param("n", type="number", values=(1, 2))], {"n": "2"}) == {"n": 2}
    assert refusal(Param("p", pattern="^v[0-9]+$"), "1.0") == 'inputs.p: "1.0" does not match ^v[0-9]+$'
    assert resolve_inputs([Param("p", pattern="b")], {"p": "abc"}) == {"p": "abc"}


@pytest.mark.parametrize(
    ("param", "text"),
    [
        (Param("t", type="string", secret=True, pattern="^[0-9]+$"), "SuperSecret"),
        (Param("t", type="number", secret=True), "SuperSecret"),
        (Param("t", type="boolean", secret=True), "SuperSecret"),
        (Param("t", type="array", secret=True), '{"k": "SuperSecret"}'),
        (Param("t", type="string", secret=True, values=("a",)), "SuperSecret"),
    ],
)
def test_a_refused_secret_is_not_shown(param, text):
    message = refusal(param, text)
    assert message.startswith("inputs.t")
    assert "SuperSecret" not in message


def test_a_resume_keeps_its_inputs():
    params = [Param("a", type="number"), Param("b", type="string")]
    assert resolve_inputs(params, {}, stored={"a": 2.0, "b": "x"}) == {"a": 2.0, "b": "x"}
    assert resolve_inputs(params, {"a": "2"}, stored={"a": 2}) == {"a": 2}
    assert "started with" in refusal(params[0], "3", stored={"a": 2})
    assert "started with" in refusal(Param("a", type="boolean"), "true", stored={})


def test_a_secret_must_be_given_again():
    secret = Param("t", type="string", secret=True, required=True)
    assert refusal(secret, stored={}) == "inputs.t is required (--set t=...)"
    assert resolve_inputs([secret], {"t": "x"}, stored={}) == {"t": "x"}


def test_ready_values_are_checked_but_not_coerced():
    params = [Param("n", type="number"), Param("s", type="string")]
    assert resolve_inputs(params, {}, {"n": 1.5, "s": "1"}) == {"n": 1.5, "s": "1"}
    assert "must be a string" in refusal(params[1], values={"s": 1})


def test_patterns_are_re2():
    assert pattern_problem("^v[0-9]+$") is None
    assert pattern_problem("(") is not None
    assert pattern_problem("(?=a)") is not None
    assert matches("(a*)*b", "a" * 50_000) is False
