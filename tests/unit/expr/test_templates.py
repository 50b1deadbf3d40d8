"""Where `{{ }}` segments end, and what a template becomes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flowstone.expr.cel import EVERYWHERE
from flowstone.expr.model import Cel, Template
from flowstone.expr.scope import Scope, evaluate_expression
from flowstone.expr.templates import Segment, parse_template, split_template


def filled(text: str, **variables: object) -> object:
    parsed = parse_template(text, EVERYWHERE)
    assert parsed.problems == ()
    if isinstance(parsed.text, str):
        return parsed.text
    assert parsed.text is not None
    scope = Scope({}, {}, lambda root, names: variables[root])
    return evaluate_expression(parsed.text, scope)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("plain }} text", "plain }} text"),
        ("<{{ 1 + 1 }}>", "<2>"),
        ("{{ {'a': {'b': 7}}.a.b }}", 7),
        ("{{ {'a':1}}}", {"a": 1}),
        ("{{ 'x}}y' }}", "x}}y"),
        ("{{ '{' + '{' }}-{{ '{{' }}", "{{-{{"),
        ('{{ "a\\"}}b" }}!', 'a"}}b!'),
        ("{{ r'\\d}}' }}", "\\d}}"),
        ("{{ '''a'}}b''' }}", "a'}}b"),
        ('{{ """}}""" }}', "}}"),
        ("{{ string(b'}}') }}", "}}"),
        ("{{ 1\n + // }} not yet\n 2 }}", 3),
        ("{{ {'x': [true, 2]} }}", {"x": [True, 2]}),
        ("a{{ [1, 2.0] }}", "a[1,2]"),
        ("{{ 1 }}{{ 2 }}", "12"),
        ("{{ null }}", None),
        ("{{1}}}", "1}"),
    ],
)
def test_segments_end_where_the_expression_ends(text, expected):
    assert filled(text) == expected


def test_a_filled_value_is_not_filled_again():
    assert filled("{{ inputs.v }}", inputs={"v": "{{ 1 + 1 }}"}) == "{{ 1 + 1 }}"


@pytest.mark.parametrize(("text", "offset"), [("{{ inputs.q", 0), ("a {{ 1 }} {{ '}}' ", 10), ("{{ { }}", 0)])
def test_an_opening_without_an_end_is_a_problem(text, offset):
    problem = parse_template(text, EVERYWHERE).problems[-1]
    assert problem.message.startswith("{{ without }}")
    assert problem.offset == offset


def test_problems_and_reads_have_offsets_in_the_text():
    parsed = parse_template("é {{ nope }} {{ steps.a-b.stdout }}", EVERYWHERE)
    assert [(p.message, p.offset) for p in parsed.problems] == [("undeclared reference to 'nope'", 5)]
    (expression, offset) = parsed.compiled[0]
    assert offset + expression.reads[0].offset == 16


def test_an_empty_segment_is_an_empty_expression():
    assert parse_template("a{{ }}", EVERYWHERE).problems[0].message == "empty expression"


def test_a_template_knows_the_steps_that_it_reads():
    template = parse_template("{{ steps.a.stdout }}{{ steps.b.stdout }}", EVERYWHERE).text
    assert isinstance(template, Template)
    assert template.reads == ("a", "b")
    assert template.parts[0] == Cel("steps.a.stdout", ("a",), ("steps",))


@given(st.text(alphabet="{}'\"\\ra1/\n `b+", max_size=40))
def test_splitting_loses_no_character(text):
    parts, unclosed = split_template(text)
    if unclosed is None:
        at = 0
        for part in parts:
            if isinstance(part, Segment):
                assert text.startswith(part.source, part.offset)
                at = part.offset + len(part.source)
            else:
                at = text.index(part, at) + len(part)
    else:
        assert text.startswith("{{", unclosed)
