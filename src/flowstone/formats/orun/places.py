"""A scalar and an offset in its text → the place in the file, as exactly as its spelling allows."""

from __future__ import annotations

import msgspec

from flowstone.diagnostics import Place
from flowstone.source.tree import Scalar


class Places(msgspec.Struct, frozen=True):
    """`lines` are those of the file."""

    lines: tuple[str, ...]

    def at(self, scalar: Scalar, offset: int) -> Place:
        """Where a character of the text stands; where the spelling hides that, the scalar's place."""
        row = scalar.text.count("\n", 0, offset)
        before = scalar.text[scalar.text.rfind("\n", 0, offset) + 1 : offset]
        line = self._line(scalar.place.line + row)
        if row == 0:
            start = scalar.place.column - 1
            if line[start : start + 1] in {'"', "'"} and not scalar.plain:
                start += 1
            if line[start:].startswith(before) and line[start : start + 1] not in {"|", ">"}:
                return Place(scalar.place.line, start + len(before) + 1)
        return self._in_block(scalar, row, before)

    def _in_block(self, scalar: Scalar, row: int, before: str) -> Place:
        """In a literal block: its text begins on the line after the sign, indented."""
        opening = self._line(scalar.place.line)[scalar.place.column - 1 :]
        number = scalar.place.line + 1 + row
        line = self._line(number)
        text = scalar.text.split("\n")[row]
        if opening.startswith("|") and text and line.endswith(text):
            return Place(number, len(line) - len(text) + len(before) + 1)
        return scalar.place

    def _line(self, number: int) -> str:
        return self.lines[number - 1] if 0 < number <= len(self.lines) else ""
