"""Cron text → its one canonical spelling, with every field checked (akm facts 7.2 and 27.1)."""

from __future__ import annotations

import re

import msgspec

from flowstone.values import clip


class CronProblem(ValueError):
    """The text is no cron expression of the subset; `field` names the field where it is one's fault."""

    def __init__(self, message: str, field: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.field = field


def check_cron(text: str) -> str:
    """The expression with single blanks between its five fields; a CronProblem says what is wrong.

    A field is `*`, a number, `a-b`, each of these with a step (`*/n`, `a-b/n`, and `a/n`, which runs
    to the end of the field), or a list of these; months and weekdays may be names (`JAN`, `mon`).
    An expression that is well formed but can never fire is a matter for `never_fires`.
    """
    if text.strip().startswith("@"):
        raise CronProblem(f'"{clip(text.strip(), 40)}" is not supported: write the five fields out')
    parts = text.split()
    if len(parts) != len(_FIELDS) or len(text) > _MAX_LENGTH:
        names = ", ".join(field.name for field in _FIELDS)
        raise CronProblem(f'"{clip(text, 80)}" has {len(parts)} fields; five are needed: {names}')
    for field, part in zip(_FIELDS, parts, strict=True):
        _values(field, part)
    return " ".join(parts)


def never_fires(text: str) -> str | None:
    """Why a valid expression can never fire (`0 0 31 2 *`), or None where it can.

    Where both days are restricted either of them suffices, so a weekday rescues the date.
    """
    _, _, day, month, weekday = text.split()
    if day.startswith("*") or not weekday.startswith("*"):
        return None
    earliest = min(_values(_FIELDS[2], day))
    longest = max(_MONTH_DAYS[number - 1] for number in _values(_FIELDS[3], month))
    if earliest <= longest:
        return None
    return f'"{text}" never fires: no month of "{month}" has a day {earliest}'


class CronTable(msgspec.Struct, frozen=True):
    """The numbers that each field admits, in order; `weekdays` from 0 (Sunday) to 6.

    `both_days`: a day must fit both day fields, since one of them begins with `*`; otherwise either
    of them suffices (the rule of Vixie's cron). `wild`: minute
    or hour begin with `*`, so that the table follows time as it passes, not the clock's face.
    """

    minutes: tuple[int, ...]
    hours: tuple[int, ...]
    days: tuple[int, ...]
    months: tuple[int, ...]
    weekdays: tuple[int, ...]
    both_days: bool
    wild: bool


def cron_table(text: str) -> CronTable:
    """The table of a valid expression."""
    parts = text.split()
    found = [_values(field, part) for field, part in zip(_FIELDS, parts, strict=True)]
    weekdays = {number % 7 for number in found[4]}
    minutes, hours, days, months = (tuple(sorted(numbers)) for numbers in found[:4])
    both_days = parts[2].startswith("*") or parts[4].startswith("*")
    wild = parts[0].startswith("*") or parts[1].startswith("*")
    return CronTable(minutes, hours, days, months, tuple(sorted(weekdays)), both_days, wild)


def numeric_cron(text: str) -> str:
    """A valid expression in the spelling that every cron reads: no names, no step without a range."""
    return " ".join(_numeric(field, part) for field, part in zip(_FIELDS, text.split(), strict=True))


def _numeric(field: _Field, text: str) -> str:
    return ",".join(_numeric_item(field, item, text) for item in text.split(","))


def _numeric_item(field: _Field, item: str, text: str) -> str:
    match = _ITEM.fullmatch(item)
    assert match is not None
    start, end, step = match.group("start"), match.group("end"), match.group("step")
    tail = "" if step is None else f"/{int(step)}"
    if start is None:
        return f"*{tail}"
    first = _number(field, start, text)
    if end is None:
        return str(first) if step is None else f"{first}-{field.high}{tail}"
    return f"{first}-{_number(field, end, text)}{tail}"


class _Field(msgspec.Struct, frozen=True):
    name: str
    low: int
    high: int
    names: tuple[str, ...] = ()


def _values(field: _Field, text: str) -> set[int]:
    """The numbers that a field admits."""
    found: set[int] = set()
    for item in text.split(","):
        found.update(_item_values(field, item, text))
    return found


def _item_values(field: _Field, item: str, text: str) -> range:
    match = _ITEM.fullmatch(item)
    if match is None:
        raise _problem(field, text, _fault(item))
    start, end, step = match.group("start"), match.group("end"), match.group("step")
    width = 1 if step is None else int(step)
    if width == 0 or width > field.high:
        raise _problem(field, text, f"the step must be from 1 to {field.high}, got {step}")
    if start is None:
        return range(field.low, field.high + 1, width)
    first = _number(field, start, text)
    last = (first if step is None else field.high) if end is None else _number(field, end, text)
    if last < first:
        raise _problem(field, text, f"the range {start}-{end} runs backwards")
    return range(first, last + 1, width)


def _number(field: _Field, text: str, whole: str) -> int:
    if text.isdigit():
        number = int(text)
    elif text.upper() in field.names:
        number = field.names.index(text.upper()) + field.low
    else:
        names = f" or one of {', '.join(field.names)}" if field.names else ""
        raise _problem(field, whole, f'"{clip(text, 20)}" is no number{names}')
    if not field.low <= number <= field.high:
        raise _problem(field, whole, f"{clip(text, 20)} is not from {field.low} to {field.high}")
    return number


def _fault(item: str) -> str:
    if not item:
        return "a list has an empty entry"
    return f'"{clip(item, 40)}" is none of *, n, a-b, */n and a-b/n'


def _problem(field: _Field, text: str, fault: str) -> CronProblem:
    return CronProblem(f'the {field.name} field "{clip(text, 40)}" is wrong: {fault}', field.name)


_MAX_LENGTH = 1000
_ITEM = re.compile(
    r"(?:\*|(?P<start>[0-9]{1,4}|[A-Za-z]+)(?:-(?P<end>[0-9]{1,4}|[A-Za-z]+))?)(?:/(?P<step>[0-9]{1,4}))?"
)
_MONTH_DAYS = (31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)
_MONTHS = ("JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC")
_WEEKDAYS = ("SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT")
_FIELDS = (
    _Field("minute", 0, 59),
    _Field("hour", 0, 23),
    _Field("day-of-month", 1, 31),
    _Field("month", 1, 12, _MONTHS),
    _Field("day-of-week", 0, 7, _WEEKDAYS),
)
