"""Reading a source file: bytes to text, and a clear refusal of everything else."""

from __future__ import annotations

import hashlib
import os

import pytest

from flowstone.errors import SourceError
from flowstone.source.file import read_source, text_of


def test_line_ends_and_mark_are_normal_and_the_digest_is_of_the_raw_bytes(tmp_path):
    raw = b"\xef\xbb\xbfa\r\nb\rc\n\xc3\xa9"
    path = tmp_path / "a.md"
    path.write_bytes(raw)
    found = read_source(str(path), 100)
    assert found.text == "a\nb\nc\né"
    assert found.digest == hashlib.sha256(raw).hexdigest()
    assert (found.path, found.size) == (str(path), len(raw))


def test_the_limit_is_in_bytes(tmp_path):
    path = tmp_path / "a"
    path.write_bytes(b"x" * 10)
    assert read_source(str(path), 10).size == 10
    with pytest.raises(SourceError, match="10 bytes; at most 9"):
        read_source(str(path), 9)


def test_a_huge_file_is_not_read(tmp_path):
    path = tmp_path / "sparse"
    with path.open("wb") as file:
        file.truncate(1 << 40)
    with pytest.raises(SourceError, match="at most 1,000"):
        read_source(str(path), 1000)


def test_bytes_that_are_no_utf8_name_the_offset():
    with pytest.raises(SourceError, match=r"x\.md: not UTF-8: byte 2 \(0xff\)"):
        text_of(b"ab\xffc", "x.md")


def test_nul_is_refused():
    with pytest.raises(SourceError, match="byte 1 is NUL"):
        text_of(b"a\0", "x")


def test_what_is_no_file_is_refused_at_once(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    for path, words in [
        (str(tmp_path / "none"), "no such file"),
        (str(tmp_path), "is a directory"),
        (str(pipe), "not a regular file"),
        ("/dev/zero", "not a regular file"),
        ("a\0b", "no file name"),
        ("", "no such file"),
    ]:
        with pytest.raises(SourceError, match=words):
            read_source(path, 1000)
