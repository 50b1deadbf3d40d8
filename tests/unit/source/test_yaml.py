"""Strict YAML 1.2: values, places, and what is refused with which words."""

from __future__ import annotations

import math
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flowstone.diagnostics import Diagnostic, Place, Report
from flowstone.source.tree import Mapping, Node, Scalar, plain
from flowstone.source.yaml import YamlRules, read_yaml

STRICT = YamlRules()
EVERYTHING = YamlRules(aliases=True, anchors=True, tags=True, merge_keys=True)


def read(text: str, rules: YamlRules = STRICT, first_line: int = 1) -> Node:
    report = Report()
    node = read_yaml(text, rules, report, first_line)
    assert report.sorted() == ()
    assert node is not None
    return node


def problems(text: str, rules: YamlRules = STRICT, first_line: int = 1) -> tuple[Diagnostic, ...]:
    report = Report()
    read_yaml(text, rules, report, first_line)
    return report.sorted()


def problem(text: str, rules: YamlRules = STRICT, first_line: int = 1) -> Diagnostic:
    (found,) = problems(text, rules, first_line)
    return found


@pytest.mark.parametrize(
    ("spelled", "value"),
    [
        ("on", "on"),
        ("yes", "yes"),
        ("No", "No"),
        ("null", None),
        ("~", None),
        ("", None),
        ("Null", None),
        ("nUll", "nUll"),
        ("true", True),
        ("TRUE", True),
        ("False", False),
        ("tRue", "tRue"),
        ("7", 7),
        ("-0", 0),
        ("+12", 12),
        ("0o17", 15),
        ("0x1F", 31),
        ("0777", 777),
        ("0b1", "0b1"),
        ("1_000", "1_000"),
        ("12:30:45", "12:30:45"),
        ("2026-01-01", "2026-01-01"),
        ("1.5", 1.5),
        (".5", 0.5),
        ("1e3", 1000.0),
        ("1.", 1.0),
        ("-.INF", -math.inf),
        (".inf", math.inf),
        ("=", "="),
        ("+", "+"),
        ("12345678901234567890123", 12345678901234567890123),
        ('"1"', "1"),
        ("'true'", "true"),
        ("0o8", "0o8"),
    ],
)
def test_scalars_follow_the_core_schema_of_yaml_1_2(spelled, value):
    found = plain(read(f"a: {spelled}\n"))["a"]
    assert found == value
    assert type(found) is type(value)


def test_nan_is_a_float():
    assert math.isnan(plain(read("a: .nan"))["a"])


def test_a_scalar_keeps_its_spelling():
    node = read("a: 1.10\nb: '1.10'\n")
    assert isinstance(node, Mapping)
    assert node.get("a") == Scalar(1.1, "1.10", Place(1, 4), plain=True)
    assert node.get("b") == Scalar("1.10", "1.10", Place(2, 4), plain=False)


def test_places_are_shifted_and_count_characters():
    node = read("é😀: {k: [x, y]}\nb:\n  - z\n", first_line=10)
    assert isinstance(node, Mapping)
    first = node.entry("é😀")
    assert first is not None
    assert (first.key.place, first.value.place) == (Place(10, 1), Place(10, 5))
    second = node.entry("b")
    assert second is not None
    assert second.value.place == Place(12, 3)


def test_an_empty_value_stands_on_the_line_of_its_key():
    node = read("a:\n\n\nb: 1\n")
    assert isinstance(node, Mapping)
    value = node.get("a")
    assert value is not None
    assert value.place.line == 1


@pytest.mark.parametrize("text", ["", "# only a comment\n", "---\n...\n", "\n\n"])
def test_no_document_is_a_null(text):
    assert plain(read(text)) is None


@pytest.mark.parametrize("text", ["---\na: 1\n", "a: 1\n...\n", "%YAML 1.2\n---\na: 1\n...\n"])
def test_document_marks_are_fine(text):
    assert plain(read(text)) == {"a": 1}


def test_a_second_document_is_refused_at_its_start():
    found = problem("a: 1\n---\nb: 2\n", first_line=5)
    assert (found.code, found.place) == ("second-document", Place(6, 1))


def test_duplicate_keys_name_both_lines():
    found = problem("a: 1\nb:\n  c: 1\n  c: 2\n", first_line=10)
    assert (found.code, found.place) == ("duplicate-key", Place(13, 3))
    assert '"c"' in found.message
    assert "line 13" in found.message
    assert "line 12" in found.message


def test_all_problems_are_collected_and_codes_may_be_renamed():
    rules = YamlRules(codes={"duplicate-key": "twice"})
    text = "a: &x 1\nb: *x\nc: !t 1\na: 2\n1: z\n"
    assert [(d.code, d.place.line) for d in problems(text, rules)] == [
        ("yaml-anchor", 1),
        ("yaml-alias", 2),
        ("yaml-custom-tag", 3),
        ("twice", 4),
        ("string-key-required", 5),
    ]


def test_aliases_merge_keys_and_core_tags_where_they_are_allowed():
    text = "a: &x {k: 1, l: 2}\nb: *x\nc: {l: 3, <<: *x}\nd: !!str 1\ne: {<<: [{p: 1}, {p: 2, q: 3}]}\n"
    assert plain(read(text, EVERYTHING)) == {
        "a": {"k": 1, "l": 2},
        "b": {"k": 1, "l": 2},
        "c": {"l": 3, "k": 1},
        "d": "1",
        "e": {"p": 1, "q": 3},
    }


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("a: *nowhere", "yaml-alias"),
        ("&a [*a]", "yaml-alias"),
        ("a: !!int x", "yaml-custom-tag"),
        ("a: !!python/object:os.system x", "yaml-custom-tag"),
        ("<<: 1", "merge-key"),
        ("? [a]\n: 1", "string-key-required"),
    ],
)
def test_what_stays_wrong_where_all_is_allowed(text, code):
    assert problem(text, EVERYTHING).code == code


def test_an_alias_bomb_is_stopped_by_the_node_bound():
    rows = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    rows += [f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 10)}]" for i in range(1, 12)]
    start = time.process_time()
    assert problem("\n".join(rows), EVERYTHING).code == "yaml-node-limit"
    assert time.process_time() - start < 1


def test_aliases_cannot_escape_the_depth_bound():
    rows = ["a0: &a0 [x]", *(f"a{i}: &a{i} [*a{i - 1}]" for i in range(1, 300))]
    assert problem("\n".join(rows), EVERYTHING).code == "yaml-depth-limit"


@pytest.mark.parametrize("opening", ["[", "{a: ", "- ", "? ", "[{a: "])
def test_deep_nesting_is_a_diagnostic(opening):
    assert problem(opening * 200_000).code == "yaml-depth-limit"


def test_the_depth_bound_counts_collections():
    rules = YamlRules(max_depth=3)
    assert plain(read("[[[x]]]", rules)) == [[["x"]]]
    assert problem("[[[[x]]]]", rules).code == "yaml-depth-limit"


def test_the_node_bound_counts_keys_values_and_collections():
    assert plain(read("[a, b]", YamlRules(max_nodes=3))) == ["a", "b"]
    assert problem("[a, b, c]", YamlRules(max_nodes=3)).code == "yaml-node-limit"


def test_huge_integers_are_exact_up_to_a_bound():
    assert plain(read("a: " + "9" * 4000))["a"] == 10**4000 - 1
    found = problem("a: " + "9" * 4001)
    assert "4,000 digits" in found.message


@pytest.mark.parametrize(
    ("text", "place", "words"),
    [
        ("a: b: c", (1, 5), "mapping values are not allowed"),
        ("a:\n\t- b", (2, 1), "a tab cannot indent"),
        ("a: @x", (1, 4), 'cannot begin with "@"'),
        ("a: [1,\n", (1, 7), "a value is expected"),
        ('a: "x\n', (1, 4), "never closed"),
        ('a: "\\q"', (1, 5), "no such escape"),
        ("a: \x07", (1, 4), "U+0007"),
        ("a: \x7f", (1, 4), "U+007F"),
        ("a: \ud800", (1, 4), "U+D800"),
        ('a: "\\ud83d"', (1, 4), "half of a character"),
        ("k" * 1100 + ": 1", (1, 1101), "more than 1,024 characters"),
        ("- a\nb: 1", (2, 1), '"-" is expected'),
    ],
)
def test_syntax_errors_say_what_and_where(text, place, words):
    found = problem(text)
    assert found.code == "invalid-yaml"
    assert found.place == Place(*place)
    assert words in found.message
    assert "\n" not in found.message


@pytest.mark.parametrize("char", ["\u2028", "\u2029", "\x85"])
def test_only_a_line_feed_ends_a_line(char):
    node = read(f"a: x{char}y\nb: [{{c: 1}}]\n")
    assert plain(node) == {"a": f"x{char}y", "b": [{"c": 1}]}
    assert isinstance(node, Mapping)
    entry = node.entry("b")
    assert entry is not None
    assert entry.key.place == Place(2, 1)


def test_carriage_returns_do_not_shift_lines():
    node = read("a: 1\r\nb: 2\r\n")
    assert isinstance(node, Mapping)
    assert node.entry("b") == node.entries[1]
    assert node.entries[1].key.place == Place(2, 1)


def test_surrogate_pairs_of_json_are_characters_in_double_quotes_only():
    text = "a: \"\\ud83d\\ude00 \\\\ud83d\"\nb: '\\uD83d\\uDE00'\nc: |\n  \\ud83D\nd: \\ude00\n"
    assert plain(read(text)) == {
        "a": "😀 \\ud83d",
        "b": "\\uD83d\\uDE00",
        "c": "\\ud83D\n",
        "d": "\\ude00",
    }


def test_private_characters_survive_beside_surrogate_pairs():
    text = 'a: "\ue03d \\ud83d\\ude00 \\ue801"\n'
    assert plain(read(text)) == {"a": "\ue03d 😀 \ue801"}


def test_many_escapes_take_linear_time():
    start = time.process_time()
    read("- '\\ud83d\\uDe00 \\u1234'\n" * 20_000)
    assert time.process_time() - start < 4


def test_a_megabyte_takes_about_a_second():
    text = "".join(f'- name: step-{i}\n  run: ["echo", "text {i}"]\n  timeout: 10m\n' for i in range(15_000))
    start = time.process_time()
    read(text, YamlRules(max_nodes=1_000_000))
    assert time.process_time() - start < 6


PIECES = st.sampled_from(
    [
        "a: ",
        "- ",
        "? ",
        "[",
        "]",
        "{",
        "}",
        ", ",
        "\n",
        "  ",
        "&x ",
        "*x",
        "!t ",
        "!!str ",
        "|\n",
        ">-\n",
        '"',
        "'",
        "<<: ",
        "#",
        "---\n",
        "...\n",
        "%YAML 1.2\n",
        "\\ud83d",
        "\\ude00",
        "\t",
        "1",
        "x",
        "\u2028",
        "\r",
        "😀",
        "\0",
    ]
)


@settings(max_examples=300, deadline=None)
@given(st.lists(PIECES, max_size=40).map("".join), st.booleans())
def test_pieces_of_yaml_never_raise(text, lenient):
    report = Report()
    rules = EVERYTHING if lenient else YamlRules()
    node = read_yaml(text, rules, report, 3)
    assert node is not None or report.failed
    last = text.count("\n") + 3
    assert all(3 <= d.place.line <= last for d in report.sorted())


@settings(max_examples=200, deadline=None)
@given(st.text(max_size=200))
def test_any_text_never_raises(text):
    report = Report()
    assert read_yaml(text, YamlRules(), report) is not None or report.failed


JSONISH = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=20), inner, max_size=4),
    max_leaves=12,
)


@settings(max_examples=200, deadline=None)
@given(JSONISH)
def test_json_is_yaml(value):
    import json

    assert plain(read(json.dumps(value))) == value
