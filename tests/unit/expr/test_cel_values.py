"""Results of expressions as JSON and as text (orun decisions 2 and 11)."""

from __future__ import annotations

import pytest

from flowstone.expr.cel import POLL_UNTIL, CompiledCel, compile_cel, evaluate
from flowstone.expr.cel_errors import CelError
from flowstone.expr.cel_values import NotJson, passable, stringify, to_json, type_of


def value(source: str) -> object:
    compiled = compile_cel(source, POLL_UNTIL)
    assert isinstance(compiled, CompiledCel)
    return evaluate(compiled, {})


@pytest.mark.parametrize(
    ("source", "text"),
    [
        ("'it'", "it"),
        ("42", "42"),
        ("-7", "-7"),
        ("3u", "3"),
        ("18446744073709551615u", "18446744073709551615"),
        ("true", "true"),
        ("null", "null"),
        ("1.0", "1"),
        ("100000000.0", "100000000"),
        ("-2.0", "-2"),
        ("0.1 + 0.2", "0.30000000000000004"),
        ("[1, 'a b', null, true, 1.5, [2.0]]", '[1,"a b",null,true,1.5,[2]]'),
        ("{'k': [1]}", '{"k":[1]}'),
        ("timestamp('2024-01-02T03:04:05Z')", "2024-01-02T03:04:05Z"),
        ("timestamp('2024-01-02T03:04:05.500Z')", "2024-01-02T03:04:05.5Z"),
        ("duration('90s')", "1m30s"),
        ("duration('3600s')", "1h0m0s"),
        ("duration('0.25s')", "250ms"),
        ("type(1)", "int"),
    ],
)
def test_text_form(source, text):
    assert stringify(value(source)) == text


def test_bytes_have_no_text_form():
    with pytest.raises(CelError, match="string"):
        stringify(value("b'abc'"))


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("null", None),
        ("1.5", 1.5),
        ("{'a': {'b': [1, true, null]}}", {"a": {"b": [1, True, None]}}),
        ("[duration('90s'), timestamp('2024-01-02T03:04:05Z')]", ["1m30s", "2024-01-02T03:04:05Z"]),
        ("9223372036854775808u", 2**63),
    ],
)
def test_json_form(source, expected):
    assert to_json(value(source)) == expected


@pytest.mark.parametrize(
    "source", ["double('NaN')", "1.0 / 0.0", "[-1.0 / 0.0]", "b'abc'", "{1: 'x'}", "{'a': {true: 1}}", "type(1)"]
)
def test_what_json_cannot_hold(source):
    with pytest.raises(NotJson, match="cannot be stored as JSON"):
        to_json(value(source))


@pytest.mark.parametrize(
    ("source", "name"), [("'a'", "string"), ("1", "int"), ("null", "null_type"), ("1.5", "double"), ("[]", "list")]
)
def test_type_names_for_messages(source, name):
    assert type_of(value(source)) == name


def test_only_plain_values_are_passed_in():
    assert passable({"a": (1, [2.5, None])}, "x") == {"a": [1, [2.5, None]]}
    with pytest.raises(CelError, match="set"):
        passable({"a": {1}}, "x")
