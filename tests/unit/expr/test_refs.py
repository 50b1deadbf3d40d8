"""The reference grammar and what a reference resolves to."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flowstone.expr.refs import ReferenceProblem, Unresolved, parse_reference, resolve


@pytest.mark.parametrize(
    ("text", "root", "name", "path"),
    [
        ("params.x", "params", "x", ()),
        ("  params.a-b ", "params", "a-b", ()),
        ("steps.a.output", "steps", "a", ()),
        ("steps.a-b.output.c[0].d-e[12]", "steps", "a-b", ("c", 0, "d-e", 12)),
    ],
)
def test_references(text, root, name, path):
    found = parse_reference(text)
    assert (found.text, found.root, found.name, found.path) == (text.strip(), root, name, path)
    assert found.reads == ((name,) if root == "steps" else ())


@pytest.mark.parametrize(
    ("text", "core", "offset"),
    [
        ("", "Empty reference; allowed forms: params.<name>, steps.<id>.output(.<ident>|[<int>])*.", 0),
        ("  ", "Empty reference", 0),
        (" 1x", "must start with an identifier", 1),
        ("foo", 'Unknown root "foo" in "foo"', 0),
        ("params", "requires a name", 6),
        ("params.a.b", 'takes exactly one name, found trailing ".b"', 8),
        ("steps", "requires a step id", 5),
        ("steps.a", 'must be followed by ".output"', 7),
        ("steps.a.result", 'Expected ".output"', 7),
        ("steps.a.output[x]", "expected [<non-negative integer>]", 14),
        ("steps.a.output[-1]", "expected [<non-negative integer>]", 14),
        ("steps.a.output b", "Unexpected character", 14),
        ("steps.a.output.", "expected an identifier", 14),
        ("item", 'Unknown root "item"', 0),
    ],
)
def test_bad_references(text, core, offset):
    with pytest.raises(ReferenceProblem) as caught:
        parse_reference(text)
    assert core in str(caught.value)
    assert caught.value.offset == offset


DATA = {"a": {"list": [1, {"x": "deep"}], "none": None, "zero": 0, "no": False}}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("params.p", "v"),
        ("steps.a.output.list[1].x", "deep"),
        ("steps.a.output.zero", 0),
        ("steps.a.output.no", False),
        ("steps.a.output", DATA["a"]),
    ],
)
def test_resolution(text, value):
    assert resolve(parse_reference(text), {"p": "v"}, DATA) == value


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("params.x", "params.x is not defined in the run's params."),
        ("params.n", "params.n resolved to null."),
        ("steps.b.output", 'steps.b.output is not available — step "b" has no recorded output.'),
        ("steps.a.output[0]", "steps.a.output is not an array — cannot resolve index [0]."),
        ("steps.a.output.list[2]", "steps.a.output.list[2] is out of bounds (array length 2)."),
        (
            "steps.a.output.list.length",
            'steps.a.output.list is not an object — cannot resolve property "length".',
        ),
        ("steps.a.output.none", "steps.a.output.none resolved to null."),
        ("steps.a.output.none.x", 'steps.a.output.none is not an object — cannot resolve property "x".'),
        (
            "steps.a.output.__class__",
            "steps.a.output.__class__ is missing (no such property, resolving steps.a.output.__class__).",
        ),
    ],
)
def test_what_does_not_resolve(text, message):
    with pytest.raises(Unresolved) as caught:
        resolve(parse_reference(text), {"n": None}, DATA)
    assert str(caught.value) == message


@given(st.text(alphabet="stepsparamsoutput.[]0123-_ ax", max_size=40) | st.text(max_size=20))
def test_any_text_is_a_reference_or_a_problem_within_it(text):
    offset = 0
    try:
        assert parse_reference(text).text == text.strip()
    except ReferenceProblem as problem:
        offset = problem.offset
    assert 0 <= offset <= len(text)
