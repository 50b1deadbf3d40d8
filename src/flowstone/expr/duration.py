"""Duration text ↔ numbers: akm's timeouts in milliseconds and Go's durations in nanoseconds."""

from __future__ import annotations

import re

from flowstone.values import Json, clip, type_name

MAX_TIMEOUT_MS = 2_147_483_647
MAX_GO_NANOSECONDS = 2**63 - 1


class DurationProblem(ValueError):
    """The value is no duration of the grammar; the message says what to write."""


def parse_timeout(value: Json) -> int | None:
    """An akm timeout in milliseconds, None for `none` (no limit).

    Integers and bare digits are milliseconds; `ms`, `s` and `m` are the units (akm facts 4.6).
    """
    if isinstance(value, bool) or not isinstance(value, (int, str, float)):
        raise DurationProblem(f"{_TIMEOUT_FORMS}, got {type_name(value)}")
    if isinstance(value, float):
        if not value.is_integer():
            raise DurationProblem(f"{_TIMEOUT_FORMS}, got {value!r}")
        return _bounded(int(value), str(value))
    if isinstance(value, int):
        return _bounded(value, str(value) if abs(value) < 10**40 else "a number of more than 40 digits")
    text = value.strip().lower()
    if text == "none":
        return None
    found = _TIMEOUT.fullmatch(text)
    if found is None:
        raise DurationProblem(f'{_TIMEOUT_FORMS}, got "{clip(value, 40)}"')
    # Twenty digits are beyond the bound in every unit, and int() must not see millions of them.
    digits = found.group(1).lstrip("0")[:20] or "0"
    return _bounded(int(digits) * _TIMEOUT_UNITS[found.group(2) or "ms"], value)


def parse_go_duration(text: str) -> int:
    """The nanoseconds of a Go duration such as `1h2m3.5s`, `300ms`, `-1s` or `0`.

    What is finer than a nanosecond is cut off, as Go does.
    """
    body = text[1:] if text[:1] in {"+", "-"} else text
    sign = -1 if text[:1] == "-" else 1
    if body == "0":
        return 0
    # The length first: the search takes the square of it where units are missing.
    parts = list(_GO_PART.finditer(body)) if len(body) <= _GO_LENGTH else []
    if not parts or "".join(part.group() for part in parts) != body:
        raise DurationProblem(_go_fault(text, body))
    total = sum(_go_nanoseconds(part) for part in parts)
    if total > MAX_GO_NANOSECONDS + (sign < 0):
        raise DurationProblem(f'invalid duration "{clip(text, 40)}": longer than about 292 years')
    return sign * total


def format_go_duration(nanoseconds: int) -> str:
    """As Go writes it: `1m30s`, `1.5s`, `10ms`, `0s`."""
    sign, left = ("-", -nanoseconds) if nanoseconds < 0 else ("", nanoseconds)
    if left == 0:
        return "0s"
    for unit, size in (("ns", 1), ("µs", 1_000), ("ms", 1_000_000)):
        if left < size * 1000:
            return f"{sign}{_decimal(left, size)}{unit}"
    minutes, rest = divmod(left, 60_000_000_000)
    text = f"{_decimal(rest, 1_000_000_000)}s"
    if minutes:
        hours, minutes = divmod(minutes, 60)
        text = f"{hours}h{minutes}m{text}" if hours else f"{minutes}m{text}"
    return sign + text


def _bounded(milliseconds: int, spelled: str) -> int:
    if milliseconds <= 0:
        raise DurationProblem(f"{_TIMEOUT_FORMS}; it must be positive, got {clip(spelled, 40)}")
    if milliseconds > MAX_TIMEOUT_MS:
        shown = clip(spelled, 40)
        raise DurationProblem(f'must be at most {MAX_TIMEOUT_MS} ms (about 24 days) or "none", got {shown}')
    return milliseconds


def _go_fault(text: str, body: str) -> str:
    shown = clip(text, 40)
    if re.fullmatch(r"[0-9.]+", body):
        return f'invalid duration "{shown}": it lacks a unit, such as {shown}s'
    unknown = re.search(r"[0-9.]([^0-9.\s]+)", body)
    if unknown is not None and unknown.group(1) not in _GO_UNITS:
        return f'invalid duration "{shown}": unknown unit "{clip(unknown.group(1), 20)}"; {_GO_FORMS}'
    return f'invalid duration "{shown}": {_GO_FORMS}'


def _go_nanoseconds(part: re.Match[str]) -> int:
    whole, fraction, unit = part.group(1), part.group(2) or "", part.group(3)
    size = _GO_UNITS[unit]
    return int(whole or "0") * size + (int(fraction) * size // 10 ** len(fraction) if fraction else 0)


def _decimal(amount: int, size: int) -> str:
    whole, rest = divmod(amount, size)
    if not rest:
        return str(whole)
    return f"{whole}.{str(rest).zfill(len(str(size)) - 1).rstrip('0')}"


_TIMEOUT_FORMS = 'must be a duration such as 500ms, 30s or 10m, a number of milliseconds, or "none"'
_TIMEOUT = re.compile(r"([0-9]+)(ms|s|m)?")
_TIMEOUT_UNITS = {"ms": 1, "s": 1_000, "m": 60_000}
_GO_FORMS = "write numbers with units, such as 300ms, 1.5s or 1h30m (ns, us, ms, s, m, h; there are no days)"
_GO_LENGTH = 1000
_GO_PART = re.compile(r"(?=[0-9]|\.[0-9])([0-9]*)(?:\.([0-9]*))?(ns|us|µs|μs|ms|s|m|h)")
_GO_UNITS = {
    "ns": 1,
    "us": 1_000,
    "µs": 1_000,
    "μs": 1_000,
    "ms": 1_000_000,
    "s": 1_000_000_000,
    "m": 60_000_000_000,
    "h": 3_600_000_000_000,
}
