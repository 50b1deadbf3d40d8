"""What the verbs that run, resume and show runs share: which run, what was given, how a drive ended."""

from __future__ import annotations

import gc
import re
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from flowstone.cli import exit_codes
from flowstone.errors import InputError, UsageError

if TYPE_CHECKING:
    from flowstone.api import Flowstone, Given
    from flowstone.drivers.drive import DriveReport

SIGNALS = {
    "signal:SIGHUP": exit_codes.HANGUP,
    "signal:SIGINT": exit_codes.INTERRUPTED,
    "signal:SIGTERM": exit_codes.TERMINATED,
}
_TIME = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h)?")
_UNITS = {"ms": 1, "s": 1_000, "m": 60_000, "h": 3_600_000}


def given_of(sets: Iterable[str], connections: Iterable[str] = ()) -> Given:
    """The texts of `--set name=value` and `--connection name.field=value`; InputError for another form."""
    from flowstone.api import Given
    from flowstone.ports.dialect import Via

    texts = []
    for word in sets:
        name, equals, value = word.partition("=")
        if not equals or not name.strip():
            raise InputError(f'invalid --set "{word}": expected key=value')
        texts.append((name.strip(), value))
    return Given(texts=tuple(texts), connections=_grants(connections), via=Via.SET)


def chosen_run(flow: Flowstone, run: str | None, last: bool) -> str:
    """The run that was asked for: by id or the start of one, else the newest one of this folder."""
    if run is not None and last:
        raise UsageError("Name a run or give --last, not both.")
    return flow.last() if run is None else run


def milliseconds(text: str) -> int:
    """A time limit such as `90`, `1.5s`, `10m` or `2h` (a bare number counts seconds)."""
    match = _TIME.fullmatch(text.strip())
    value = round(float(match[1]) * _UNITS[match[2] or "s"]) if match else 0
    if not 0 < value < 2**31:
        raise InputError(f'"{text}" is no time limit: write for instance 90s, 10m or 2h.')
    return value


def keep_what_is_there() -> None:
    """Before a drive: what is in memory now stays to its end, so garbage is looked for among the rest only."""
    gc.freeze()


def ended_with(report: DriveReport) -> int:
    """The exit code after a drive: 0 only when the run succeeded."""
    if report.end.halt == "interrupted":
        return SIGNALS.get(report.end.cause or "", exit_codes.FAILED)
    return exit_codes.OK if report.state.status == "succeeded" else exit_codes.FAILED


def _grants(words: Iterable[str]) -> Mapping[str, Mapping[str, str]]:
    grants: dict[str, dict[str, str]] = {}
    for word in words:
        left, equals, value = word.partition("=")
        name, dot, field = left.strip().partition(".")
        if not (equals and dot and name and field):
            raise InputError(f'invalid --connection "{word}": expected name.field=value')
        grants.setdefault(name, {})[field] = value
    return grants


def now_ms() -> int:
    """Milliseconds since the epoch, for views of what still runs."""
    import time

    return time.time_ns() // 1_000_000
