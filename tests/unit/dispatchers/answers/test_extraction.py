"""What counts as the JSON of a model's answer (akm facts 10.3), and what never does."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flowstone.dispatchers.answers.extraction import NoJson, find_json


def anything(value):
    return True


def found(text, fits=anything, **options):
    return find_json(text, fits, **options)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('{"v": 1}', {"v": 1}),
        ("  7 \n", 7),
        ('"text"', "text"),
        ("null", None),
        ('\ufeff{"v": 1}', {"v": 1}),
        ('```json\n{"v": 1}\n```', {"v": 1}),
        ('````\n{"v": "```"}\n````', {"v": "```"}),
        ("```\n5\n```", 5),
        ('<think>{"v": "no"}</think>\n{"v": 1}', {"v": 1}),
        ('so I think {"v": "no"} </think> {"v": 1}', {"v": 1}),
        ('<thinking>a</thinking>```json\n{"v": 1}\n```', {"v": 1}),
        ('{"v": "<think>kept</think>"}', {"v": "<think>kept</think>"}),
        ('<think>x</think>{"v": "<think>kept</think>"}', {"v": "<think>kept</think>"}),
        ('{"v": "two\nlines\tand a tab"}', {"v": "two\nlines\tand a tab"}),
        ('Sure!\n```\n{"v": 1}\n```\nAnything else?', {"v": 1}),
        ('```bash\nls {a,b}\n```\n\n{"v": 1}', {"v": 1}),
        ('{"v": 1, "code": "```py\\nprint({})\\n```"}', {"v": 1, "code": "```py\nprint({})\n```"}),
        ('{"v": 1} {note: not json}', {"v": 1}),
        ('I used { and it is ok: {"v": 1}.', {"v": 1}),
        ('[see below] {"v": "a } b"} bye', {"v": "a } b"}),
        ("The list is [1, 2].", [1, 2]),
        ('[1] then {"v": 1}', {"v": 1}),
    ],
)
def test_values(text, value):
    assert found(text) == value


@pytest.mark.parametrize(
    "text",
    [
        "",
        "   ",
        "no",
        "true or false",
        '{"a": {"v": 1}',
        '{"list": [{"v": 1}, {"v": 2}',
        'Here: [{"v": 1}, {"v": 2}',
        '{"a": 1, oops} ',
        '<think>{"v": 1}',
        "{a: {b: 1}}",
        '{"v": NaN}',
    ],
)
def test_a_fragment_or_damage_is_no_value(text):
    with pytest.raises(NoJson):
        found(text)


def test_the_value_that_fits_goes_before_the_first():
    text = 'First {"w": 1}, then {"v": 2} and [3].'
    assert found(text, lambda value: "v" in value) == {"v": 2}
    assert found(text, lambda value: isinstance(value, list)) == [3]
    assert found(text, lambda value: False) == {"w": 1}


def test_a_cut_text_counts_only_as_a_whole():
    assert found('{"v": 1}', whole=True) == {"v": 1}
    with pytest.raises(NoJson):
        found('As I said, {"v": 1} is', whole=True)


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text('ab<{[`"\n'), inner, max_size=4),
    max_leaves=12,
)


@given(st.dictionaries(st.text('abc{}[]`"\n'), VALUES), st.sampled_from(["", "Well, here it is:\n", "```json\n"]))
def test_an_object_comes_back_whole_or_not_at_all(value, before):
    after = "\n```" if before.startswith("```") else ""
    assert found(f"{before}{json.dumps(value, ensure_ascii=False)}{after}") == value


@given(st.dictionaries(st.text("abc"), VALUES, min_size=1), st.integers(1))
def test_a_cut_object_is_no_value(value, cut):
    text = json.dumps(value)
    with pytest.raises(NoJson):
        found(text[: 1 + cut % (len(text) - 1)])


def test_large_prose_is_read_in_one_pass():
    text = "{" * 200_000 + '[ "' * 10 + '{"v": 1}'
    with pytest.raises(NoJson):
        found(text)


@pytest.mark.parametrize("piece", ["<think>", "</think>", '\\"', '"', "[", "```\n", '{"', "<", '{"a":'])
def test_what_repeats_is_read_in_one_pass(piece):
    with pytest.raises(NoJson):
        found(piece * 200_000)
