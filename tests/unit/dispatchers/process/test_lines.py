"""Live lines: whole, redacted, one owner each, whatever the chunks."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from flowstone.dispatchers.process.lines import PIECE_BYTES, Lines
from flowstone.redaction import Redactor
from tests.unit.dispatchers.process.conftest import Bench


def fed(chunks: list[bytes], secrets: tuple[str, ...] = ()) -> list[str]:
    seen: list[str] = []
    lines = Lines(Redactor(secrets), seen.extend)
    for chunk in chunks:
        lines.feed(chunk)
    lines.finish()
    return seen


def test_lines_as_they_come_and_a_last_one_without_line_feed() -> None:
    assert fed([b"a\nb", b"c\n\n", b"10%\r20%\r", b"x"]) == ["a", "bc", "", "10%\r20%\rx"]


@given(st.integers(1, 40), st.integers(0, 20))
def test_no_chunking_shows_a_secret(size: int, before: int) -> None:
    data = b"." * before + b"sesame-open-now" + b"\nnext"
    chunks = [data[i : i + size] for i in range(0, len(data), size)]
    assert fed(chunks, ("sesame-open-now",)) == ["." * before + "[REDACTED]", "next"]


MANY = ("one\ntwo\nthree!", "e!\nx an")


@given(st.integers(1, 40), st.sampled_from(["", "z", "a\n", "one\n", "one\ntwo\n"]), st.booleans())
def test_no_chunking_shows_a_secret_of_several_short_lines(size: int, before: str, whole: bool) -> None:
    data = f"{before}one\ntwo\nthree!\nx and\nlast".encode() + b"\n" * whole
    chunks = [data[i : i + size] for i in range(0, len(data), size)]
    shown = f"{before}[REDACTED]d\nlast"
    assert fed(chunks, MANY) == shown.split("\n")


def test_a_line_is_not_held_back_for_a_secret_that_did_not_begin() -> None:
    seen: list[str] = []
    lines = Lines(Redactor(MANY), seen.extend)
    for text, shown in (
        ("none\n", []),
        ("two\nfour\n", ["none", "two", "four"]),
        ("five\n", ["none", "two", "four", "five"]),
    ):
        lines.feed(text.encode())
        assert seen == shown


def test_a_secret_of_several_lines_in_front_of_a_very_long_one() -> None:
    data = b"one\ntwo\nthree!" + b"." * 300_000 + b"\nend\n"
    seen = fed([data[i : i + 50_000] for i in range(0, len(data), 50_000)], MANY)
    assert "".join(seen) == "[REDACTED]" + "." * 300_000 + "end"


def test_a_very_long_line_comes_in_pieces_of_bounded_size() -> None:
    data = "é€x".encode() * 100_000
    seen = fed([data[i : i + 70_001] for i in range(0, len(data), 70_001)])
    assert "".join(seen) == data.decode()
    assert len(seen) > 5
    assert max(len(line.encode()) for line in seen) <= PIECE_BYTES


def test_pieces_cut_no_secret() -> None:
    secret = "sesame-open-now"
    for shift in range(-20, 5):
        data = b"x" * (PIECE_BYTES + shift) + secret.encode() + b"y" * PIECE_BYTES * 2
        seen = fed([data[i : i + 9000] for i in range(0, len(data), 9000)], (secret,))
        text = "".join(seen)
        assert text.count("[REDACTED]") == 1
        assert "open" not in text
        assert text.replace("[REDACTED]", secret).encode() == data


def test_pieces_of_bytes_that_are_no_text() -> None:
    seen = fed([bytes(range(128, 256)) * 2000])
    assert "".join(seen) == "\ufffd" * 256_000


def test_lines_of_a_running_unit_name_it(bench: Bench) -> None:
    bench.sh(
        "printf 'tok=sesame'; sleep 0.1; echo -open; echo err >&2; printf end",
        live=True,
        secrets=("sesame-open",),
    )
    assert {line[:2] for line in bench.lines} == {("a", "a:solo")}
    assert sorted(line[2] for line in bench.lines) == ["end", "err", "tok=[REDACTED]"]


def test_a_secret_in_one_line_of_many_is_found_in_that_line_alone() -> None:
    data = b"".join(b"line %d\n" % number for number in range(9_000))
    seen = fed([data, b"open\nsesame-open-now\n", data], ("sesame-open-now",))
    assert len(seen) == 18_002
    assert seen[9_000:9_003] == ["open", "[REDACTED]", "line 0"]


def test_a_long_line_among_short_ones_comes_in_pieces() -> None:
    data = b"short\n" + b"x" * (3 * PIECE_BYTES) + b"\nshort\n"
    seen = fed([data])
    assert seen[0] == seen[-1] == "short"
    assert "".join(seen[1:-1]) == "x" * (3 * PIECE_BYTES)
    assert max(map(len, seen)) <= PIECE_BYTES


def test_bytes_that_are_no_text_are_told_apart_by_line() -> None:
    assert fed([b"\xe2\x82\n\xac\n\xff\xc3\xa4\n"]) == ["\ufffd\ufffd", "\ufffd", "\ufffdä"]
