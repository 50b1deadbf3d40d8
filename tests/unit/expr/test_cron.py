"""Five-field cron expressions."""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flowstone.expr.cron import CronProblem, check_cron, cron_table, never_fires, numeric_cron


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ("0 6 * * *", "0 6 * * *"),
        ("  0\t6  * * 7 ", "0 6 * * 7"),
        ("5-59/15 * * * *", "5-59/15 * * * *"),
        ("5/15 * * * *", "5/15 * * * *"),
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


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        ("5/15 * * * *", "5-59/15 * * * *"),
        ("10-20/5 3 * JAN,jul MON-fri", "10-20/5 3 * 1,7 1-5"),
        ("*/20 0,12 */2 * 7", "*/20 0,12 */2 * 7"),
    ],
)
def test_the_spelling_that_every_cron_reads(text, plain):
    assert numeric_cron(text) == plain
    assert cron_table(text) == cron_table(plain)


def test_a_table_says_which_day_fields_must_fit():
    assert not cron_table("0 0 13 * FRI").both_days
    assert cron_table("0 0 */2 * 1").both_days
    assert cron_table("0 0 * * 7").weekdays == (0,)
    assert cron_table("*/20 2 * * *").wild
    assert not cron_table("30 2 * * *").wild
