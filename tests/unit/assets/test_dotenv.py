"""The grammar of env files."""

import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flowstone.assets.dotenv import parse_dotenv
from flowstone.errors import SourceError


def parse(text):
    return parse_dotenv(text.encode(), "x.env")


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("A=abc", "abc"),
        ('A="abc"', "abc"),
        ("A=def#hi", "def#hi"),
        ("A=#hi", "#hi"),
        ("A=has space # comment", "has space"),
        ("A=x\t# comment", "x"),
        ("A= # comment", ""),
        ("A=", ""),
        ("A='$HOME #x'", "$HOME #x"),
        ("A=$HOME/${X}", "$HOME/${X}"),
        ("export A=f", "f"),
        ("  export   A = f  ", "f"),
        ("A=a=b=c", "a=b=c"),
        ('A="two\nlines" # c', "two\nlines"),
        ("A='two\nlines'", "two\nlines"),
        (r'A="q\"q"', 'q"q'),
        (r'A="a\nb\tc\\d\$e\x"', "a\nb\tc\\d$e\\x"),
        (r"A='a\nb'", r"a\nb"),
        ("A=it's", "it's"),
        ('A={"k":"v","n":"a\\nb"}', '{"k":"v","n":"a\\nb"}'),
        ("A=é", "é"),
        ('A=""', ""),
        ("A=b\r\n", "b"),
    ],
)
def test_values(text, value):
    assert parse(text) == {"A": value}


def test_no_entry_swallows_the_next():
    text = "\ufeff# head\n\nA=\"x\" # 'y\nB='z'\n  \nC=\nD=1\n"
    assert parse(text) == {"A": "x", "B": "z", "C": "", "D": "1"}


def test_a_later_value_holds_and_takes_its_place():
    assert list(parse("A=1\nB=2\nA=3").items()) == [("B", "2"), ("A", "3")]


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("A=1\nsome words", 2),
        ("A=1\n\nB: 2", 3),
        ("=x", 1),
        ("1A=x", 1),
        ("export A", 1),
        ("A=1\nB='never closed\nC=2", 2),
        ('A="never closed', 1),
        ("A='x' y", 1),
        ('A="two\nlines" rest', 2),
        ("A=1\nB=a\0b", 2),
    ],
)
def test_a_bad_line_is_named_and_not_shown(text, line):
    with pytest.raises(SourceError) as caught:
        parse(text)
    assert str(caught.value).startswith(f"x.env:{line}: ")
    assert "never closed\nC" not in str(caught.value)
    assert "words" not in str(caught.value)


def test_a_file_that_is_no_text():
    with pytest.raises(SourceError, match=r"^x\.env:2: "):
        parse_dotenv(b"A=1\nB=\xff\n", "x.env")


@given(st.dictionaries(st.from_regex(r"[A-Z_][A-Z0-9_]{0,8}", fullmatch=True), st.text()))
def test_what_is_quoted_comes_back_as_it_was(values):
    values = {
        name: value.replace("\0", "").replace("\r", "").encode("utf-8", "ignore").decode()
        for name, value in values.items()
    }
    text = "\n".join(
        '{}="{}"'.format(name, value.replace("\\", "\\\\").replace('"', '\\"')) for name, value in values.items()
    )
    assert parse(text) == values


@given(st.text())
def test_any_text_is_read_or_refused(text):
    try:
        result = parse_dotenv(text.encode("utf-8", "replace"), "x")
    except SourceError as error:
        result = {"refused": str(error)}
    assert all(isinstance(value, str) for value in result.values())


def test_a_long_quoted_value_takes_little_memory():
    tracemalloc.start()
    try:
        assert parse_dotenv(b'A="' + b"x" * 1_000_000 + b'\\n"', "env")["A"].endswith("x\n")
        assert tracemalloc.get_traced_memory()[1] < 20_000_000
    finally:
        tracemalloc.stop()
