"""Five-field cron expressions."""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flowstone.expr.cron import CronProblem, check_cron, never_fires


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ("0 6 * * *", "0 6 * * *"),
        ("  0\t6  * * 7 ", "0 6 * * 7"),
        ("5-59/15 * * * *", "5-59/15 * * * *"),
        ("*/15 0,12 1-15 */2 1-5", "*/15 0,12 1-15 */2 1-5"),
        ("10-20/5 3 * JAN,jul MON-fri", "10-20/5 3 * JAN,jul MON-fri"),
    ],
)
def test_good_expressions(text, canonical):
    assert check_cron(text) == canonical
    assert never_fires(canonical) is None


@pytest.mark.parametrize(
    ("text", "field", "words"),
    [
        ("60 * * * *", "minute", "60 is not from 0 to 59"),
        ("-1 * * * *", "minute", "none of"),
        ("a * * * *", "minute", "no number"),
        ("*/0 * * * *", "minute", "step must be from 1"),
        ("*/60 * * * *", "minute", "step must be from 1"),
        ("5-1 * * * *", "minute", "backwards"),
        ("5/15 * * * *", "minute", "write 5-59/15"),
        ("1,,2 * * * *", "minute", "empty entry"),
        ("0 24 * * *", "hour", "24 is not from 0 to 23"),
        ("0 0 0 * *", "day-of-month", "0 is not from 1 to 31"),
        ("0 0 L * *", "day-of-month", "no number"),
        ("0 0 * 13 *", "month", "13 is not from 1 to 12"),
        ("0 0 * * 8", "day-of-week", "8 is not from 0 to 7"),
        ("0 0 * * 1#2", "day-of-week", "none of"),
        ("0 0 * MON *", "month", "one of JAN"),
    ],
)
def test_a_bad_field_is_named(text, field, words):
    with pytest.raises(CronProblem) as caught:
        check_cron(text)
    assert caught.value.field == field
    assert field in caught.value.message
    assert words in caught.value.message


@pytest.mark.parametrize("text", ["", "* * * *", "* * * * * *", "@daily", " @every 5m", "* * * * *" * 500])
def test_exactly_five_fields(text):
    with pytest.raises(CronProblem) as caught:
        check_cron(text)
    assert caught.value.field is None
    assert "five" in caught.value.message


@pytest.mark.parametrize("text", ["0 0 31 2 *", "0 0 30,31 FEB *", "0 0 31 4,6,9 *"])
def test_impossible_dates_never_fire(text):
    assert "never fires" in (never_fires(check_cron(text)) or "")


@pytest.mark.parametrize("text", ["0 0 29 2 *", "0 0 1 1 0", "0 0 31 2 1", "0 0 31 2,3 *", "0 0 * 2 *"])
def test_possible_dates(text):
    assert never_fires(check_cron(text)) is None


@given(st.text(alphabet="0123456789*/,- LJANmon#@", max_size=30))
def test_any_text_is_cron_or_a_problem(text):
    with suppress(CronProblem):
        assert check_cron(check_cron(text)) == check_cron(text)
        never_fires(check_cron(text))
