"""akm timeouts and Go durations."""

from __future__ import annotations

import time
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flowstone.expr.duration import DurationProblem, format_go_duration, parse_go_duration, parse_timeout


@pytest.mark.parametrize(
    ("value", "milliseconds"),
    [
        (500, 500),
        ("500", 500),
        ("20ms", 20),
        (" 30S ", 30_000),
        ("10m", 600_000),
        ("none", None),
        ("NONE", None),
        (2_147_483_647, 2_147_483_647),
        (5.0, 5),
        ("007", 7),
    ],
)
def test_timeouts(value, milliseconds):
    assert parse_timeout(value) == milliseconds


@pytest.mark.parametrize(
    "value",
    [
        "0",
        0,
        "-1",
        -1,
        "1.5s",
        1.5,
        "2h",
        "",
        "1 s",
        True,
        None,
        [],
        {},
        "s",
        "forever",
        "٣",
        float("inf"),
        float("nan"),
    ],
)
def test_what_is_no_timeout(value):
    with pytest.raises(DurationProblem, match="must be a duration such as 500ms"):
        parse_timeout(value)


@pytest.mark.parametrize("value", [2_147_483_648, "2147483648", "35792m", "9" * 10_000])
def test_too_long_a_timeout_has_its_own_message(value):
    with pytest.raises(DurationProblem, match="at most 2147483647 ms"):
        parse_timeout(value)


@pytest.mark.parametrize(
    ("text", "nanoseconds", "spelled"),
    [
        ("1h2m3.5s", 3_723_500_000_000, "1h2m3.5s"),
        ("90s", 90_000_000_000, "1m30s"),
        ("1.5s", 1_500_000_000, "1.5s"),
        ("10ms", 10_000_000, "10ms"),
        ("0", 0, "0s"),
        ("0s", 0, "0s"),
        ("-1s", -1_000_000_000, "-1s"),
        ("+5m", 300_000_000_000, "5m0s"),
        ("1h", 3_600_000_000_000, "1h0m0s"),
        ("1.5us", 1_500, "1.5µs"),
        ("7µs", 7_000, "7µs"),
        ("3ns", 3, "3ns"),
        (".5s", 500_000_000, "500ms"),
        ("1.s", 1_000_000_000, "1s"),
        ("1s1s", 2_000_000_000, "2s"),
        ("0.1234567899s", 123_456_789, "123.456789ms"),
        ("9223372036854775807ns", 2**63 - 1, "2562047h47m16.854775807s"),
        ("-9223372036854775808ns", -(2**63), "-2562047h47m16.854775808s"),
    ],
)
def test_go_durations(text, nanoseconds, spelled):
    assert parse_go_duration(text) == nanoseconds
    assert format_go_duration(nanoseconds) == spelled


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "write numbers with units"),
        ("5", "lacks a unit, such as 5s"),
        ("1d", 'unknown unit "d"'),
        ("1e3s", 'unknown unit "e"'),
        ("s", "write numbers with units"),
        (".s", "write numbers with units"),
        ("--1s", "write numbers with units"),
        ("1h ", "write numbers with units"),
        ("9223372036854775808ns", "292 years"),
        ("3000000h", "292 years"),
        ("9" * 5000 + "s", "write numbers"),
    ],
)
def test_what_is_no_go_duration(text, words):
    with pytest.raises(DurationProblem, match=words):
        parse_go_duration(text)


def test_an_endless_number_is_too_long_a_timeout():
    with pytest.raises(DurationProblem, match="at most 2147483647 ms"):
        parse_timeout(10**5000)


@given(st.integers(-(2**63), 2**63 - 1))
def test_every_duration_comes_back(nanoseconds):
    assert parse_go_duration(format_go_duration(nanoseconds)) == nanoseconds


@given(st.text(alphabet="0123456789.hmsnuµ+- ", max_size=20))
def test_any_text_is_a_duration_or_a_problem(text):
    with suppress(DurationProblem):
        assert parse_go_duration(format_go_duration(parse_go_duration(text))) == parse_go_duration(text)


def test_a_go_duration_as_long_as_a_file_is_refused_at_once():
    begun = time.process_time()
    with pytest.raises(DurationProblem):
        parse_go_duration("9" * 1_000_000)
    assert time.process_time() - begun < 0.5
