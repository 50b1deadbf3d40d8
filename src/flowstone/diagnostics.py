"""Diagnostics: an author's mistakes, each with its place, collected over a whole file.

A parser or check adds to a `Report` and goes on; at the end the report is sorted by place. The
first `SHOWN` diagnostics are shown and one line counts the rest.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum

import msgspec

SHOWN = 50
"""Diagnostics of one file that are listed; the rest are counted (akm facts 3.4)."""


class Severity(StrEnum):
    ERROR = "error"
    WARNING = "warning"


class Place(msgspec.Struct, frozen=True, order=True):
    """A position in a source: line and column count from 1, the column in characters."""

    line: int = 1
    column: int = 1


WHOLE_FILE = Place(0, 0)
"""The place of what is wrong with a file as a whole: that it cannot be read, or is of no language."""


class Diagnostic(msgspec.Struct, frozen=True):
    """One mistake: what is wrong, where, and what to write instead.

    `code` is stable, in kebab case; `hint` says what to write instead where that is known.
    """

    code: str
    message: str
    place: Place = Place()
    hint: str | None = None
    severity: Severity = Severity.ERROR


class Report:
    """Collects the diagnostics of one file; the same complaint at the same place is kept once."""

    def __init__(self) -> None:
        self._found: dict[tuple[Place, str, str], Diagnostic] = {}

    def error(self, code: str, message: str, place: Place, hint: str | None = None) -> None:
        self.add(Diagnostic(code, message, place, hint))

    def warn(self, code: str, message: str, place: Place, hint: str | None = None) -> None:
        self.add(Diagnostic(code, message, place, hint, Severity.WARNING))

    def add(self, diagnostic: Diagnostic) -> None:
        self._found.setdefault((diagnostic.place, diagnostic.code, diagnostic.message), diagnostic)

    def extend(self, diagnostics: Iterable[Diagnostic]) -> None:
        for diagnostic in diagnostics:
            self.add(diagnostic)

    @property
    def failed(self) -> bool:
        return any(d.severity is Severity.ERROR for d in self._found.values())

    def sorted(self) -> tuple[Diagnostic, ...]:
        """All diagnostics by place; at one place in the order in which they were found."""
        return tuple(sorted(self._found.values(), key=lambda d: d.place))


def errors_of(diagnostics: Iterable[Diagnostic]) -> tuple[Diagnostic, ...]:
    return tuple(d for d in diagnostics if d.severity is Severity.ERROR)
