"""The cursor reads values, and words what does not fit, at its place."""

from __future__ import annotations

import pytest

from flowstone.diagnostics import Place, Report
from flowstone.source.cursor import Cursor
from flowstone.source.yaml import YamlRules, read_yaml


def cursor(text: str) -> tuple[dict[str, Cursor], Report]:
    report = Report()
    node = read_yaml(text, YamlRules(), report)
    assert node is not None
    return Cursor(node, "", report, node.place).mapping(), report


def complaint(report: Report) -> tuple[str, str, Place, str | None]:
    (found,) = report.sorted()
    return found.code, found.message, found.place, found.hint


def test_values_are_read_with_their_paths():
    fields, report = cursor("s:\n  - n: 3\n    x: 1.5\n    b: true\n    w: fail\n    t: hi\n    v: {a: [1, null]}\n")
    (step,) = fields["s"].items()
    inner = step.mapping(["n", "x", "b", "w", "t", "v"])
    assert inner["n"].integer(1, 5) == 3
    assert inner["x"].number() == 1.5
    assert inner["b"].boolean() is True
    assert inner["w"].one_of("fail", "continue") == "fail"
    assert inner["t"].text(empty=False) == "hi"
    assert inner["v"].value() == {"a": [1, None]}
    assert inner["v"].path == "s[0].v"
    assert report.sorted() == ()


def test_a_whole_float_is_an_integer():
    fields, _ = cursor("a: 2.0\n")
    assert fields["a"].integer() == 2


@pytest.mark.parametrize(
    ("yaml", "read", "code", "message"),
    [
        ("a: [1]", lambda c: c.text(), "string-required", '"a" must be a string, got a list.'),
        ("a: ''", lambda c: c.text(empty=False), "string-required", '"a" must be a non-empty string.'),
        ("a: 1", lambda c: c.text(), "string-required", '"a" must be a string, got 1.'),
        (
            "a: x",
            lambda c: c.integer(1),
            "integer-required",
            '"a" must be an integer of at least 1, got the string "x".',
        ),
        ("a: true", lambda c: c.integer(), "integer-required", '"a" must be an integer, got true.'),
        ("a: 9", lambda c: c.integer(1, 5), "out-of-range", '"a" must be an integer from 1 to 5, got 9.'),
        (
            "a: yes",
            lambda c: c.boolean(),
            "boolean-required",
            '"a" must be true or false, got the string "yes".',
        ),
        ("a: .nan", lambda c: c.number(), "number-required", '"a" must be a finite number, got .nan.'),
        (
            "a: {b: [.inf]}",
            lambda c: c.value(),
            "number-required",
            '"a" holds .inf, which is no JSON number.',
        ),
        (
            "a: maybe",
            lambda c: c.one_of("fail", "go"),
            "invalid-value",
            '"a" must be one of fail, go, got "maybe".',
        ),
        ("a:", lambda c: c.one_of("fail"), "invalid-value", '"a" must be one of fail, got null.'),
        (
            "a: x",
            lambda c: c.mapping() or None,
            "mapping-required",
            '"a" must be a mapping, got the string "x".',
        ),
        ("a: {}", lambda c: c.items() or None, "sequence-required", '"a" must be a list, got a mapping.'),
    ],
)
def test_what_does_not_fit(yaml, read, code, message):
    fields, report = cursor(yaml)
    assert read(fields["a"]) is None
    assert complaint(report)[:2] == (code, message)


def test_unknown_keys_are_told_with_a_suggestion_and_left_out():
    fields, report = cursor("unit:\n  modle: x\n  model: y\n")
    assert list(fields["unit"].mapping(["engine", "model"])) == ["model"]
    assert complaint(report) == (
        "unknown-key",
        'Unknown key "modle" in "unit". Allowed keys: engine, model.',
        Place(2, 3),
        'did you mean "model"?',
    )


def test_callers_choose_code_and_words():
    report = Report()
    node = read_yaml("x: 1\n", YamlRules(), report)
    assert node is not None
    Cursor(node, "", report, node.place).mapping(["a"], code="odd", label="Unknown workflow frontmatter key")
    assert complaint(report)[:2] == ("odd", 'Unknown workflow frontmatter key "x". Allowed keys: a.')


def test_a_name_replaces_the_path():
    fields, report = cursor("t: []")
    fields["t"].named('Step "a" "timeout"').text()
    assert complaint(report)[1] == 'Step "a" "timeout" must be a string, got a list.'


def test_a_block_value_is_reported_at_its_key():
    fields, report = cursor("a: 1\nunit:\n    - x\n")
    fields["unit"].mapping()
    assert complaint(report)[2] == Place(2, 1)
