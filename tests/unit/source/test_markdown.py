"""Front matter and headings, with a second Markdown parser as the oracle."""

from __future__ import annotations

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from flowstone.diagnostics import Place
from flowstone.source.markdown import opens_front_matter, sections, split_front_matter


@pytest.mark.parametrize(
    ("text", "yaml", "body", "body_line"),
    [
        ("---\na: 1\n---\nx\n", "a: 1\n", "x\n", 4),
        ("---\na: 1\n---", "a: 1\n", "", 4),
        ("---  \n---\t\nx", "", "x", 3),
        ("---\na: |\n  ---\n ---\n---x\n---\n---\n", "a: |\n  ---\n ---\n---x\n", "---\n", 7),
    ],
)
def test_fences(text, yaml, body, body_line):
    found = split_front_matter(text)
    assert found is not None
    assert (found.yaml, found.yaml_line, found.body, found.body_line) == (yaml, 2, body, body_line)


@pytest.mark.parametrize(
    "text", ["", "---hello\n---\n", " ---\n---\n", "\n---\n---\n", "---\na: 1\n", "----\n---\n", "---"]
)
def test_no_front_matter(text):
    assert split_front_matter(text) is None


def test_an_unclosed_fence_can_be_told_from_none():
    assert opens_front_matter("---\na: 1\n")
    assert not opens_front_matter("a: 1\n")


def test_sections_of_a_workflow():
    body = "\n# Ship it ##\n\nIntro.\n\n## a ##\n\n  Do a.  \n\n# In a\n\n### gate\n\nGood?\n\n### more\n\n## b-2\n\nDo b.\n"
    found = sections(body, 5)
    assert found.title == "Ship it"
    assert found.preamble == "# Ship it ##\n\nIntro."
    first, second = found.sections
    assert (first.name, first.place, first.first_line) == ("a", Place(10, 1), 12)
    assert first.text == "  Do a.  \n\n# In a"
    assert (first.gate_text, first.gate_place) == ("Good?\n\n### more", Place(16, 1))
    assert (second.name, second.text, second.gate_text) == ("b-2", "Do b.", None)


def test_a_blank_gate_is_no_rubric_and_further_gates_are_told():
    found = sections("## a\nx\n### gate\n \n\n## b\n### gate\ny\n### gate ###\nz\n", 1).sections
    assert (found[0].gate_text, found[0].gate_place) == (None, Place(3, 1))
    assert (found[1].gate_text, found[1].extra_gates) == ("y\n### gate ###\nz", (Place(9, 1),))


@pytest.mark.parametrize(
    "heading", ["### Gate", "### gate extra", "## gate", "#### gate", "###gate", "- ### gate", "    ### gate"]
)
def test_what_begins_no_gate(heading):
    found = sections(f"## a\n\nx\n\n{heading}\n\ny\n", 1).sections
    assert found[0].gate_place is None


@pytest.mark.parametrize(
    ("body", "names"),
    [
        ("   ## a\n", ["a"]),
        ("    ## a\n", []),
        ("\t## a\n", []),
        ("##a\n", []),
        ("##\ta\n", ["a"]),
        ("##\n", [""]),
        ("## a #\n", ["a"]),
        ("## a#\n", ["a#"]),
        ("## é 😀 ##  \n", ["é 😀"]),
        ("a\n---\n## b\n", ["b"]),
        ("```\n## a\n```\n## b\n", ["b"]),
        ("~~~\n## a\n```\n## b\n", []),
        ("````\n```\n## a\n````\n## b\n", ["b"]),
        ("- ## a\n- x\n\n  ## b\n", []),
        ("> ## a\n\n## b\n", ["b"]),
        ("<div>\n## a\n</div>\n\n## b\n", ["b"]),
        ("<!--\n\n## a\n-->\n## b\n", ["b"]),
        ("text\n## a\n", ["a"]),
        ("é\n\n## a\n\nü\n## b", ["a", "b"]),
        ("\\## a\n", []),
        ("####### a\n", []),
    ],
)
def test_which_headings_count(body, names):
    assert [section.name for section in sections(body, 1).sections] == names


def oracle(body: str) -> list[int]:
    """The lines of top-level ATX headings of level 2, by markdown-it."""
    lines = body.split("\n")
    tokens = MarkdownIt("commonmark").parse(body)
    return [
        token.map[0] + 1
        for token in tokens
        if token.type == "heading_open" and token.tag == "h2" and token.level == 0 and token.map is not None
        if lines[token.map[0]].lstrip(" ").startswith("##") and token.markup == "##"
    ]


LINES = st.sampled_from(
    [
        "## a",
        "### gate",
        "# t",
        "   ## b ##",
        "    ## code",
        "```",
        "~~~",
        "````",
        "- ## x",
        "- item",
        "> ## q",
        "> text",
        "text",
        "",
        "",
        "---",
        "===",
        "<div>",
        "</div>",
        "<!--",
        "-->",
        "## é",
        "##",
        "1. x",
        "  ## in",
        "[r]: /u",
        "`x",
        "\t## t",
    ]
)


@settings(max_examples=400, deadline=None)
@given(st.lists(LINES, max_size=14).map("\n".join))
def test_headings_agree_with_the_oracle(body):
    assert [section.place.line for section in sections(body, 1).sections] == oracle(body)


@settings(max_examples=200, deadline=None)
@given(st.text(st.characters(codec="utf-8", exclude_characters="\r\0"), max_size=200), st.integers(1, 50))
def test_any_text_is_split_without_loss(text, first_line):
    split_front_matter(text)
    found = sections("## a\n" + text, first_line)
    assert found.sections[0].place == Place(first_line, 1)
    for section in found.sections:
        assert section.text in text


@pytest.mark.parametrize("hostile", ["[" * 200_000, ">" * 50_000, "*a **b " * 30_000, "## a\n" * 50_000, "`" * 100_000])
def test_hostile_bodies_take_little_time(hostile):
    start = time.process_time()
    sections("# t\n" + hostile, 1)
    assert time.process_time() - start < 4
