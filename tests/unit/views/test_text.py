"""What commands print, made fit for people and pages."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flowstone.views.text import one_line, plain_text, spell_count, spell_ms, spell_size, tail


@pytest.mark.parametrize(
    ("printed", "shown"),
    [
        ("plain é 漢\ttab\n", "plain é 漢\ttab\n"),
        ("\x1b[1;31mred\x1b[0m", "red"),
        ("\x1b]0;title\x07text", "text"),
        ("\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\", "link"),
        ("\x1b(Bascii\x1bM", "ascii"),
        ("10%\r55%\r100%\n", "100%\n"),
        ("downloading\rdone", "doneloading"),
        ("one\r\ntwo\r\n", "one\ntwo\n"),
        ("abc\b\bx", "ax"),
        ("nul\0bell\x07", "nulbell"),
        ("right\u202eleft", "rightleft"),
    ],
)
def test_a_terminals_text_is_made_plain(printed, shown):
    assert plain_text(printed) == shown


@given(st.text())
def test_no_control_character_is_left(text):
    assert not any(ord(char) < 32 and char not in "\n\t" for char in plain_text(text))
    assert "\x7f" not in plain_text(text)


def test_one_line_is_bounded():
    assert one_line("a\n  b\tc") == "a b c"
    assert one_line("x" * 500, 10) == "x" * 9 + "…"


def test_a_tail_begins_at_a_line_and_knows_the_whole_size():
    text = "".join(f"line {number}\n" for number in range(1_000))
    kept = tail(text, 100)
    assert kept.size == len(text)
    assert kept.cut
    assert kept.text.startswith("line ")
    assert text.endswith(kept.text)
    assert not tail("short", 100).cut


@pytest.mark.parametrize(
    ("duration", "shown"),
    [
        (None, ""),
        (0, "0ms"),
        (340, "340ms"),
        (1_240, "1.2s"),
        (59_970, "1m00s"),
        (185_000, "3m05s"),
        (7_440_000, "2h04m"),
    ],
)
def test_durations(duration, shown):
    assert spell_ms(duration) == shown


def test_counts_and_sizes():
    assert [spell_count(n, "unit") for n in (1, 10_000)] == ["1 unit", "10,000 units"]
    assert [spell_size(n) for n in (812, 41_000, 24_000_000)] == ["812", "41.0 K", "24.0 M"]
