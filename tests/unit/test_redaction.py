"""Secrets in every form in which programs print them, and nothing but secrets."""

from __future__ import annotations

import base64
import json
import subprocess
import sys
import time
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flowstone.redaction import MARK, Redactor, Secret

TOKEN = 'p@ss/w:rd "quoted" \\ é'
WORDS = st.text(st.characters(codec="utf-8", exclude_characters="[]REDACT"), min_size=6, max_size=40)


def test_without_secrets_everything_is_itself() -> None:
    text, value = "text " * 10, {"a": [1]}
    redactor = Redactor(["", "  "])
    assert redactor.empty
    assert redactor.text(text) is text
    assert redactor.json(value) is value


def test_a_long_value_inside_a_word() -> None:
    assert Redactor(["hunter2"]).text("xhunter2y") == f"x{MARK}y"


@pytest.mark.parametrize("secret", ["abc", "a", "12345"])
def test_a_short_value_is_a_whole_token(secret: str) -> None:
    redact = Redactor([secret]).text
    assert redact(f"{secret} {secret}d x{secret} 9{secret} {secret}.") == (
        f"{MARK} {secret}d x{secret} 9{secret} {MARK}."
    )
    assert redact(f"é{secret} _{secret}_") == f"é{secret} _{MARK}_"


@pytest.mark.parametrize(
    "form",
    [
        TOKEN,
        json.dumps(TOKEN),
        json.dumps(TOKEN, ensure_ascii=False),
        json.dumps(json.dumps(TOKEN)),
        json.dumps(TOKEN).replace("/", "\\/"),
        quote(TOKEN),
        quote(TOKEN, safe=""),
        quote_plus(TOKEN),
        quote(TOKEN, safe="").lower(),
        repr(TOKEN),
        repr(TOKEN + "'"),
        ascii(TOKEN),
        base64.b64encode(TOKEN.encode()).decode(),
        base64.urlsafe_b64encode(TOKEN.encode()).decode().rstrip("="),
    ],
)
def test_printed_forms(form: str) -> None:
    redacted = Redactor([TOKEN]).text(f"<{form}>")
    assert MARK in redacted
    for part in ("p@ss", "p%40", "w:rd", "w%3", "quoted", form[4:12]):
        assert part not in redacted


@given(WORDS, st.binary(max_size=5), st.binary(max_size=5))
def test_base64_at_every_alignment(secret: str, before: bytes, after: bytes) -> None:
    redactor = Redactor([secret.strip() and secret])
    encoded = base64.b64encode(before + secret.encode() + after).decode()
    if not redactor.empty and len(secret.strip()) >= 6:
        assert MARK in redactor.text(encoded)


def test_base64_in_wrapped_lines() -> None:
    secret = "-".join(f"{n:04}" for n in range(60))
    wrapped = base64.encodebytes(secret.encode()).decode()
    redacted = Redactor([secret]).text(wrapped)
    assert redacted.replace(MARK, "").strip() == ""


def test_lines_of_a_multi_line_value() -> None:
    redact = Redactor(["{\n}\na\n    long-enough-secret-1\n"]).text
    assert redact("brace { and e and fine text") == "brace { and e and fine text"
    assert redact("{ } a long-enough-secret-1") == "{ } a " + MARK


def test_a_json_secret_in_any_shape() -> None:
    secret = '{\n  "type": "service",\n  "key": "-----BEGIN KEY-----\\nQUJDREVGR0g0123\\n-----END KEY-----\\n",\n  "pass\\"word": "tr0ub4dor-and-3"\n}'
    redact = Redactor([secret]).text
    shapes = [
        secret,
        " ".join(secret.split()),
        json.dumps({"v": secret}),
        repr(secret),
        str(json.loads(secret)),
    ]
    shapes += [json.dumps(json.loads(secret)), json.dumps(json.loads(secret), indent=8)]
    shapes += [f"line: {line}" for line in secret.splitlines()]
    for shape in shapes:
        redacted = redact(shape)
        assert "QUJDREVGR0g0123" not in redacted
        assert "tr0ub4dor" not in redacted
    assert redact("line: x") == "line: x"


def test_a_trailing_line_feed_of_a_secret_file() -> None:
    assert Redactor(["hush-9\n"]).text("k=hush-9;") == f"k={MARK};"


def test_overlapping_and_adjoining_secrets_become_one_mark() -> None:
    secrets = ["hunter", "hunter-two-secret", "redacted", "secret-three"]
    for order in (secrets, secrets[::-1]):
        redact = Redactor(order).text
        assert redact("[hunter-two-secret]") == f"[{MARK}]"
        assert redact("[hunterhunter-two-secret]") == f"[{MARK}]"
        assert redact("hunter-two-secret-three.") == f"{MARK}."
        assert redact("[redacted]") == f"[{MARK}]"


@pytest.mark.parametrize("secret", ["REDACTED", "EDACTE", "[REDACTED]"])
def test_marks_are_never_broken_up(secret: str) -> None:
    redact = Redactor([secret, "hunter2"]).text
    once = redact("x hunter2 and hunter2")
    assert redact(once) == once
    assert once == f"x {MARK} and {MARK}"


@given(st.lists(WORDS, min_size=1, max_size=5), st.lists(st.text(max_size=10), max_size=5))
def test_no_secret_survives_and_twice_is_once(secrets: list[str], between: list[str]) -> None:
    redactor = Redactor(secrets)
    text = "".join(part for pair in zip(secrets, between, strict=False) for part in pair)
    once = redactor.text(text)
    for secret in secrets:
        if len(secret.strip()) >= 6:
            assert secret not in once.replace(MARK, "\0")
    if all(len(secret.strip()) >= 6 for secret in secrets):  # a mark beside a short one makes it a token
        assert redactor.text(once) == once


def test_only_a_beginning_is_wanted() -> None:
    redact = Redactor(["sesame-open"]).text
    assert redact("1234sesame-open", 8) == "1234" + MARK
    assert redact("1234sesame-open", 4) == "1234"
    assert redact("sesame-open1234", 13) == MARK + "12"


def test_json_values_keys_and_numbers() -> None:
    redactor = Redactor(["sesame-open", "123456789", "4711"])
    value = {"sesame-open": ["a sesame-open", 123456789, 4711, 47112, 1.5, True, None], "b": {}}
    assert redactor.json(value) == {MARK: [f"a {MARK}", MARK, MARK, 47112, 1.5, True, None], "b": {}}


def test_keys_that_become_equal_keep_their_values() -> None:
    value = Redactor(["secret-a", "secret-b"]).json({"secret-a": 1, "secret-b": 2})
    assert value == {MARK: 1, f"{MARK} (2)": 2}


def test_extended_knows_both_and_leaves_the_first_alone() -> None:
    first = Redactor(["first-secret"])
    both = first.extended(["second-secret"])
    assert both.text("first-secret second-secret") == f"{MARK} {MARK}"
    assert first.text("second-secret") == "second-secret"
    assert first.extended(["first-secret"]) is first


def test_a_secret_shows_itself_nowhere() -> None:
    assert "hunter2" not in repr(Secret("hunter2"))
    assert Redactor([Secret("hunter2")]).text("hunter2") == MARK


def test_the_result_is_the_same_in_every_process() -> None:
    script = (
        "from flowstone.redaction import Redactor\n"
        "print(Redactor(['hunter', 'hunter-two', 'two-three', 'ab']).text('hunter-two-three ab hunterhunter'))"
    )
    outputs = set()
    for seed in ("1", "2"):
        run = subprocess.run(
            [sys.executable, "-c", script],
            env={"PYTHONHASHSEED": seed, "PYTHONPATH": ":".join(sys.path)},
            capture_output=True,
            text=True,
            check=True,
        )
        outputs.add(run.stdout)
    assert len(outputs) == 1


@pytest.mark.parametrize("piece", ["x" * 99 + "\n", "sesame-open", "aaaaaaa", "a b c ", "\u20ac"])
def test_megabytes_take_little_time(piece: str) -> None:
    text = piece * ((8 << 20) // len(piece))
    redactor = Redactor(["sesame-open", "aaaaaaab", "c", "another-secret-value/with+signs"])
    started = time.process_time()
    redactor.text(text)
    assert time.process_time() - started < 8
