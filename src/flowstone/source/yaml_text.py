"""YAML text → text that libyaml reads as YAML 1.2 means it, and back; the inner side of `read_yaml`.

libyaml takes U+0085, U+2028 and U+2029 for line breaks and refuses surrogate pairs in JSON
escapes. Both are replaced by as many other characters, so offsets stay, and put back in values.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right

from flowstone.diagnostics import Place


class LoneSurrogate(ValueError):
    """A quoted text holds one half of a surrogate pair without the other."""


class Prepared:
    """The text for libyaml, what was replaced in it, and the places of its offsets.

    `unreadable` holds the first characters that YAML does not allow, each with its offset.
    """

    def __init__(self, original: str) -> None:
        self.original = original
        self.text = original
        self.unreadable: list[tuple[int, str]] = []
        self.odd_breaks = False
        self.breaks_back: dict[int, str] = {}
        self.pairs_base = 0
        self.pairs: list[tuple[int, str, str]] = []
        self._stand_ins: set[str] = set()
        self._line_starts: list[int] = []

    @property
    def changed(self) -> bool:
        return bool(self.breaks_back or self.pairs)

    def end(self, first_line: int) -> Place:
        """The place behind the last character of the last line that is not empty."""
        return self.place(len(self.original.rstrip("\n")), first_line)

    def place(self, offset: int, first_line: int) -> Place:
        """The place of a character, where only a line feed ends a line."""
        if not self._line_starts:
            self._line_starts = [0, *(found.end() for found in re.finditer("\n", self.original))]
        line = bisect_right(self._line_starts, offset) - 1
        return Place(line + first_line, offset - self._line_starts[line] + 1)

    def add_pair(self, offset: int, before: str, after: str) -> None:
        self.pairs.append((offset, before, after))
        self._stand_ins.add(after)

    def restore(self, value: str, start: int, end: int, double_quoted: bool) -> str:
        """A scalar's value as the original text means it; the scalar spans `start` to `end`."""
        if self.breaks_back:
            value = value.translate(self.breaks_back)
        if self.pairs and double_quoted:
            return self._join_pairs(value)
        return self._unescaped(value, start, end) if self.pairs else value

    def _join_pairs(self, value: str) -> str:
        low = self.pairs_base
        halves = "".join(chr(ord(char) - low + 0xD800) if low <= ord(char) < low + 0x800 else char for char in value)
        try:
            return halves.encode("utf-16-le", "surrogatepass").decode("utf-16-le")
        except UnicodeDecodeError:
            raise LoneSurrogate from None

    def _unescaped(self, value: str, start: int, end: int) -> str:
        """Outside double quotes `\\ud83d` is six plain characters: they come back as written."""
        if "\\u" not in value:
            return value
        first, behind = (bisect_left(self.pairs, (offset, "", "")) for offset in (start, end))
        written_here = iter(self.pairs[first:behind])

        def written(match: re.Match[str]) -> str:
            found = match.group()
            if found not in self._stand_ins:
                return found
            return next((before for _, before, after in written_here if after == found), found)

        return _ESCAPED.sub(written, value)


def prepare(text: str) -> Prepared:
    prepared = Prepared(text)
    prepared.unreadable = [(m.start(), m.group()) for m in _first(_UNREADABLE, text, 20)]
    prepared.odd_breaks = any(char in text for char in _ODD_BREAKS)
    if prepared.unreadable:
        return prepared
    _replace_breaks(prepared)
    if _ESCAPED_HALF.search(text):
        _replace_halves(prepared)
    return prepared


def _first(pattern: re.Pattern[str], text: str, count: int) -> list[re.Match[str]]:
    found: list[re.Match[str]] = []
    for match in pattern.finditer(text):
        if len(found) == count:
            break
        found.append(match)
    return found


def _replace_breaks(prepared: Prepared) -> None:
    lowered = ""
    stand_in = 0xF0000
    for char in _ODD_BREAKS[1:]:
        if char not in prepared.text:
            continue
        lowered = lowered or prepared.text.lower()
        while chr(stand_in) in lowered or f"{stand_in:x}" in lowered:
            stand_in += 1
        prepared.breaks_back[stand_in] = char
        prepared.text = prepared.text.replace(char, chr(stand_in))
        stand_in += 1


def _replace_halves(prepared: Prepared) -> None:
    """Put `\\ue…`, `\\ue8…` or `\\uf0…`, whichever the text does not use, for escaped surrogates."""
    for base in (0xE000, 0xE800, 0xF000):
        used = re.compile(f"[{chr(base)}-{chr(base + 0x7FF)}]|\\\\[uU](?:0000)?(?:{_digits(base)})")
        if not used.search(prepared.text):
            prepared.pairs_base = base
            break
    else:
        return

    def stand_in(match: re.Match[str]) -> str:
        half = int(match.group(2), 16)
        after = f"\\u{half - 0xD800 + prepared.pairs_base:04x}"
        prepared.add_pair(match.start() + len(match.group(1)), match.group()[-6:], after)
        return match.group(1) + after

    prepared.text = _ESCAPED_HALF.sub(stand_in, prepared.text)


def _digits(base: int) -> str:
    first, start = f"{base:04x}"[0], int(f"{base:04x}"[1], 16)
    seconds = "".join(f"{digit:x}{digit:X}" for digit in range(start, start + 8))
    return f"[{first}{first.upper()}][{seconds}]"


_ODD_BREAKS = "\r\x85\u2028\u2029"
# The other way round, as what is allowed, this takes ten times as long to compile.
_UNREADABLE = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x84\x86-\x9f\ud800-\udfff\ufffe\uffff]")
_ESCAPED = re.compile(r"\\u[0-9a-f]{4}")
_ESCAPED_HALF = re.compile(r"(?<!\\)((?:\\\\)*)\\u([dD][89a-fA-F][0-9a-fA-F]{2})")
