"""Parameter flags: read by the declared type, then held against the schemas."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flowstone.errors import InputError
from flowstone.formats.akm_common.dialect import AkmDialect
from flowstone.formats.akm_common.flags import check_params, coerce_flags
from flowstone.plan.model import Param
from flowstone.ports.dialect import Given, Via
from tests.unit.formats.akm.compiling import markdown, plan_of


def _param(name: str, schema: dict[str, Any]) -> Param:
    return Param(name, schema, has_default="default" in schema, default=schema.get("default"))


SHORT = """params: { token: { default: x }, password: { default: long-default } }
steps:
  - id: a"""
"""What stands in a workflow file for all to read is no secret, unless it is long enough to be meant as one."""
PARAMS = [
    _param("s", {"type": "string"}),
    _param("n", {"type": "integer"}),
    _param("x", {"type": "number"}),
    _param("b", {"type": "boolean"}),
    _param("l", {"type": "array", "items": {"type": "integer"}}),
    _param("ls", {"type": "array", "items": {"type": "string"}}),
    _param("o", {"type": "object"}),
    _param("u", {}),
    _param("sn", {"type": ["string", "null"]}),
    _param("nn", {"type": ["integer", "null"]}),
]


@pytest.mark.parametrize(
    ("flags", "value"),
    [
        ([("s", "1")], "1"),
        ([("s", None)], "true"),
        ([("s", "")], ""),
        ([("n", "-1")], -1),
        ([("n", "5.0")], 5),
        ([("n", "123456789012345678901234567890")], 123456789012345678901234567890),
        ([("x", "1.5")], 1.5),
        ([("x", "1.0")], 1),
        ([("x", "1e3")], 1000),
        ([("b", None)], True),
        ([("b", "false")], False),
        ([("l", "1"), ("l", "2")], [1, 2]),
        ([("l", "[1, 2]")], [1, 2]),
        ([("l", "3")], [3]),
        ([("ls", "a b"), ("ls", "")], ["a b", ""]),
        ([("o", '{"a": [1.0]}')], {"a": [1]}),
        ([("u", "12")], "12"),
        ([("u", None)], True),
        ([("sn", "null")], "null"),
        ([("nn", "null")], None),
        ([("nn", "7")], 7),
    ],
)
def test_a_flag_is_read_by_its_type(flags: list[tuple[str, str | None]], value: Any) -> None:
    assert coerce_flags(PARAMS, flags) == {flags[0][0]: value}


@pytest.mark.parametrize(
    ("flags", "says"),
    [
        ([("n", None)], "--n requires a value of type integer"),
        ([("n", "x")], '--n must be integer; received "x"'),
        ([("n", "")], '--n must be integer; received ""'),
        ([("n", "1.5")], '--n must be integer; received "1.5"'),
        ([("x", "1e999")], '--x must be number; received "1e999"'),
        ([("x", "nan")], "--x must be number"),
        ([("b", "maybe")], '--b must be boolean; received "maybe"'),
        ([("l", "a")], '--l must be integer; received "a"'),
        ([("o", "{")], "--o must be object as JSON"),
        ([("s", "a"), ("s", "b")], "--s was provided more than once but is not declared as an array"),
        ([("nn", "x")], '--nn must be integer or null; received "x"'),
    ],
)
def test_a_flag_that_does_not_fit(flags: list[tuple[str, str | None]], says: str) -> None:
    with pytest.raises(InputError) as refused:
        coerce_flags(PARAMS, flags)
    assert says in refused.value.message
    assert refused.value.code == "INVALID_FLAG_VALUE"


def test_an_unknown_flag_lists_the_known_ones() -> None:
    with pytest.raises(InputError) as refused:
        coerce_flags(PARAMS[:2], [("zz", "1")])
    assert refused.value.code == "UNKNOWN_FLAG"
    assert "--s, --n" in (refused.value.hint or "")
    with pytest.raises(InputError) as none:
        coerce_flags([], [("zz", "1")])
    assert "no params" in (none.value.hint or "")


def test_defaults_hold_where_a_flag_is_absent() -> None:
    params = [_param("a", {"type": "integer", "default": 3}), _param("b", {"default": None})]
    assert coerce_flags(params, []) == {"a": 3, "b": None}
    assert coerce_flags(params, [("a", "4")]) == {"a": 4, "b": None}
    assert coerce_flags(params, [], {"a": 5}) == {"a": 5, "b": None}


def test_all_violations_are_listed() -> None:
    params = [_param("s", {"type": "string", "maxLength": 2}), _param("n", {"type": "integer", "minimum": 5})]
    with pytest.raises(InputError) as refused:
        check_params(params, {"s": "abc", "n": 1})
    assert refused.value.message.startswith("Workflow parameter flags do not satisfy the workflow's declared schemas:")
    assert "params.s" in refused.value.message
    assert "params.n" in refused.value.message


@pytest.mark.parametrize(
    "text", ["9007199254740993", "9007199254740993.0", "9007199254740993e0", "9.007199254740993e15"]
)
def test_no_digit_of_a_whole_number_is_lost(text: str) -> None:
    assert coerce_flags(PARAMS, [("x", text), ("n", text)]) == {"n": 9007199254740993, "x": 9007199254740993}


def test_a_complaint_spells_a_param_as_it_was_given() -> None:
    dialect = AkmDialect()
    plan = plan_of(markdown("params: { n: { type: integer, minimum: 5 } }\nsteps:\n  - id: a"))

    def said(given: Given) -> str:
        with pytest.raises(InputError) as refused:
            dialect.resolve(plan, given)
        return f"{refused.value.message} {refused.value.hint}"

    assert '--n must be integer; received "x"' in said(Given((("n", "x"),)))
    assert '--set n must be integer; received "x"' in said(Given((("n", "x"),), via=Via.SET))
    assert said(Given((("zz", "1"),))) == "Unknown flag --zz. The workflow declares --n."
    assert said(Given((("zz", "1"),), via=Via.SET)) == 'Unknown parameter "zz" (--set zz=…). The workflow declares n.'
    assert said(Given(values={"zz": 1})) == 'Unknown parameter "zz". The workflow declares n.'
    assert said(Given(values={"n": 1})).startswith("The params do not satisfy the workflow's declared schemas:")


@given(st.text(), st.integers())
def test_text_and_integers_come_through(text: str, number: int) -> None:
    assert coerce_flags(PARAMS, [("s", text), ("n", str(number))]) == {"s": text, "n": number}


def test_the_dialect_resolves_warns_and_keeps() -> None:
    dialect = AkmDialect()
    plan = plan_of(markdown("params: { api_token: { type: string }, n: { default: 1 } }\nsteps:\n  - id: a"))
    found = dialect.resolve(plan, Given((("api_token", "abcdefgh"),)))
    assert found.params == {"api_token": "abcdefgh", "n": 1}
    assert found.secrets == ("abcdefgh",)
    assert "api_token has a secret-suggesting name" in found.warnings[0]
    assert "env:" in found.warnings[0]
    short = dialect.resolve(plan_of(markdown(SHORT)), Given())
    assert short.secrets == ("long-default",)
    assert dialect.resolve(plan_of(markdown(SHORT)), Given((("token", "y"),))).secrets == ("y", "long-default")
    assert dialect.resume(plan, Given(), {"n": 2}).params == {"n": 2}
    with pytest.raises(InputError, match="only be set on a new run"):
        dialect.resume(plan, Given((("n", "1"),)), {})
    assert [dialect.word(word) for word in ("open", "succeeded", "held", "failed")] == [
        "pending",
        "completed",
        "blocked",
        "failed",
    ]
