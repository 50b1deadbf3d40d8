"""Durations as Go spells them (`1m30s`, `1.5h`, `250ms`) ↔ nanoseconds."""

from __future__ import annotations

import re

MAX_NS = 2**63 - 1
"""The longest duration that Go knows, some 292 years."""


def parse_go_duration(text: str) -> int:
    """Nanoseconds of a duration, negative ones included; ValueError says what is wrong."""
    sign, rest = (-1, text[1:]) if text.startswith("-") else (1, text.removeprefix("+"))
    if rest == "0":
        return 0
    if not rest or not _WHOLE.fullmatch(rest):
        raise ValueError(_complaint(text))
    total = sum(_nanoseconds(part) for part in _PART.finditer(rest))
    if total > MAX_NS:
        raise ValueError(f'invalid duration "{text[:80]}": longer than 292 years')
    return sign * total


def go_duration(nanoseconds: int) -> str:
    """The duration as Go prints it: `0s`, `50ms`, `1.5s`, `1m30s`, `1h0m0s`."""
    sign, rest = ("-", -nanoseconds) if nanoseconds < 0 else ("", nanoseconds)
    if rest == 0:
        return "0s"
    for unit, size in (("ns", 1), ("µs", 1_000), ("ms", 1_000_000)):
        if rest < size * 1_000:
            return f"{sign}{_decimal(rest, size)}{unit}"
    minutes, rest = divmod(rest, 60_000_000_000)
    text = f"{_decimal(rest, 1_000_000_000)}s"
    if minutes:
        hours, minutes = divmod(minutes, 60)
        text = f"{hours}h{minutes}m{text}" if hours else f"{minutes}m{text}"
    return sign + text


def _nanoseconds(part: re.Match[str]) -> int:
    whole, fraction, unit = part.groups()
    size = _UNITS[unit]
    digits = (fraction or "")[:30]
    return int(whole or 0) * size + (int(digits) * size // 10 ** len(digits) if digits else 0)


def _decimal(amount: int, unit: int) -> str:
    whole, rest = divmod(amount, unit)
    digits = str(unit + rest)[1:].rstrip("0")
    return f"{whole}.{digits}" if digits else str(whole)


def _complaint(text: str) -> str:
    if re.fullmatch(r"[+-]?[0-9.]+", text):
        return f'invalid duration "{text[:80]}": missing unit (ns, us, ms, s, m or h), as in "{text[:20]}s"'
    return f'invalid duration "{text[:80]}": write it like 500ms, 30s, 1m30s or 2h'


_UNITS = {
    "ns": 1,
    "us": 1_000,
    "µs": 1_000,
    "μs": 1_000,
    "ms": 1_000_000,
    "s": 1_000_000_000,
    "m": 60_000_000_000,
    "h": 3_600_000_000_000,
}
_PART = re.compile(r"([0-9]{0,20})(?:\.([0-9]*))?(ns|us|µs|μs|ms|s|m|h)")
_WHOLE = re.compile(r"(?:(?:[0-9]{1,20}(?:\.[0-9]*)?|\.[0-9]+)(?:ns|us|µs|μs|ms|s|m|h))+")
