"""Texts for people: a terminal's output made plain, long texts shortened, times spelt.

Every view and page passes what commands printed through `plain_text` before it shows it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

import msgspec

ESCAPES = re.compile(
    r"\x1b\[[0-?]*[ -/]*[@-~]"  # CSI: colours, cursor moves
    r"|\x1b[\]PX^_][^\x07\x1b]*(?:\x07|\x1b\\)?"  # OSC, DCS, SOS, PM, APC: titles, links
    r"|\x1b[ -/]*[0-~]"  # two-character escapes
    r"|\x9b[0-?]*[ -/]*[@-~]"  # the one-byte CSI
)
CONTROLS = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ufeff\ufffe\uffff]")
SECOND = 1_000
MINUTE = 60 * SECOND
HOUR = 60 * MINUTE


class Tail(msgspec.Struct, frozen=True):
    """The end of a text; `size` counts the characters of the whole."""

    text: str
    size: int

    @property
    def cut(self) -> bool:
        return len(self.text) < self.size


def plain_text(text: str) -> str:
    """What a terminal would show at the end: no escapes, no control characters, overwritten lines once."""
    if text.isascii() and text.isprintable():
        return text
    shown = ESCAPES.sub("", text.replace("\r\n", "\n"))
    if "\r" in shown:
        shown = "\n".join(_overwritten(line) for line in shown.split("\n"))
    if "\b" in shown:
        shown = _rubbed_out(shown)
    return CONTROLS.sub("", shown)


def one_line(text: str, limit: int = 200) -> str:
    """A text in one line of at most `limit` characters."""
    flat = " ".join(plain_text(text[: limit * 8]).split())
    return flat if len(flat) <= limit else flat[: limit - 1] + "…"


def tail(text: str, limit: int) -> Tail:
    """The last `limit` characters, begun at a line where one begins soon."""
    if len(text) <= limit:
        return Tail(text, len(text))
    kept = text[-limit:]
    line = kept.find("\n", 0, limit // 4)
    return Tail(kept[line + 1 :], len(text))


DIGEST_CHARS = 12
"""Characters of a digest that a line of progress shows, as of a commit."""


_UNIT_DIGEST = re.compile(rf"(?<!sha256)(:[0-9a-f]{{{DIGEST_CHARS}}})[0-9a-f]{{{64 - DIGEST_CHARS}}}(?![0-9a-f])")


def short_unit(text: str) -> str:
    """A unit's id, or a text that names some, with the digests shortened: what every text for people shows.

    JSON has the whole ids; `why` takes either.
    """
    return text if len(text) <= 64 else _UNIT_DIGEST.sub(r"\1", text)


def notes_of(warnings: Iterable[str], unit: str) -> list[str]:
    """The warnings of a unit's outcome as notes below that unit: without its name in front."""
    return [text.removeprefix(f'unit "{unit}": ') for text in warnings]


def spell_ms(duration: int | None) -> str:
    """A duration for people: `340ms`, `1.2s`, `3m05s`, `2h04m`."""
    if duration is None:
        return ""
    if duration < SECOND:
        return f"{max(duration, 0)}ms"
    if duration < MINUTE - 50:
        return f"{duration / SECOND:.1f}s"
    seconds = round(duration / SECOND)
    if seconds < 3600:
        return f"{seconds // 60}m{seconds % 60:02d}s"
    minutes = seconds // 60
    return f"{minutes // 60}h{minutes % 60:02d}m"


def spell_count(number: int, noun: str) -> str:
    """`1 step`, `2 steps`, `10,000 units`."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def spell_part(done: int, total: int, noun: str) -> str:
    """`0/1 unit`, `120/1,000 units`, `10,000/10,000 units`."""
    return f"{done:,}/{spell_count(total, noun)}"


def spell_size(characters: int) -> str:
    """A size for people: `812`, `4.1 K`, `24.0 M` characters."""
    if characters < 10_000:
        return f"{characters:,}"
    if characters < 1_000_000:
        return f"{characters / 1_000:.1f} K"
    return f"{characters / 1_000_000:.1f} M"


def _overwritten(line: str) -> str:
    """A line whose carriage returns went back to its start: later text covers what stood there."""
    shown = ""
    for part in line.split("\r"):
        shown = part + shown[len(part) :]
    return shown


def _rubbed_out(text: str) -> str:
    kept: list[str] = []
    for character in text:
        if character != "\b":
            kept.append(character)
        elif kept and kept[-1] != "\n":
            kept.pop()
    return "".join(kept)
