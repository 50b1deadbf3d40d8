"""Markdown text → front matter and sections: the shell of a Markdown workflow, before any meaning.

CommonMark decides what a heading is; only ATX headings at the top level of the body count.
"""

from __future__ import annotations

import re
from typing import Any

import msgspec

from flowstone.diagnostics import Place


class FrontMatter(msgspec.Struct, frozen=True):
    """The YAML between the fences and the body behind them, each with the number of its first line."""

    yaml: str
    yaml_line: int
    body: str
    body_line: int


class Section(msgspec.Struct, frozen=True):
    """A level-2 heading with what stands below it, up to the next one.

    `text` ends where a `### gate` heading begins; `first_line` is the line of its first line.
    `gate_text` is what follows that heading, None where it is blank; `gate_place` is the heading's
    place and `extra_gates` the places of further ones. Blank lines at the ends are trimmed.
    """

    name: str
    place: Place
    text: str
    first_line: int
    gate_text: str | None = None
    gate_place: Place | None = None
    extra_gates: tuple[Place, ...] = ()


class Sections(msgspec.Struct, frozen=True):
    """A body: the `title` (the first level-1 heading of the preamble), the preamble, the sections."""

    preamble: str
    title: str | None
    sections: tuple[Section, ...]


def split_front_matter(text: str) -> FrontMatter | None:
    """Cut the front matter off; None where the text does not begin with a closed `---` fence."""
    opening = _OPENING.match(text)
    if opening is None:
        return None
    closing = _CLOSING.search(text, opening.end())
    if closing is None:
        return None
    yaml = text[opening.end() : closing.start()]
    body_line = 2 + yaml.count("\n") + 1
    return FrontMatter(yaml, 2, text[closing.end() :], body_line)


def opens_front_matter(text: str) -> bool:
    """Whether the text begins with a fence, be it closed or not."""
    return _OPENING.match(text) is not None


def sections(body: str, first_line: int) -> Sections:
    """Split a body, whose first line is line `first_line` of its file, at its level-2 headings."""
    data = body.encode("utf-8")
    headings = _headings(data, first_line)
    seconds = [heading for heading in headings if heading.level == 2]
    ends = [*(heading.start for heading in seconds[1:]), len(data)]
    first = seconds[0].start if seconds else len(data)
    title = next((h.text for h in headings if h.level == 1 and h.start < first), None)
    found = tuple(
        _section(data, heading, end, gates)
        for heading, end, gates in zip(seconds, ends, _by_section(headings), strict=False)
    )
    return Sections(data[:first].decode("utf-8").strip(), title, found)


class _Heading(msgspec.Struct, frozen=True):
    """An ATX heading: `start` is the byte at which its line begins, `end` where the next line does."""

    level: int
    text: str
    place: Place
    start: int
    end: int


def _headings(data: bytes, first_line: int) -> list[_Heading]:
    found: list[_Heading] = []
    line, counted = first_line, 0
    for level, offset in _top_level(data.decode("utf-8")):
        if data[offset : offset + 1] != b"#":
            continue  # a setext heading, underlined
        start = data.rfind(b"\n", 0, offset) + 1
        end = data.find(b"\n", offset) + 1 or len(data)
        line += data.count(b"\n", counted, start)
        counted = start
        text = _heading_text(data[offset:end].decode("utf-8"))
        found.append(_Heading(level, text, Place(line, offset - start + 1), start, end))
    return found


def _top_level(body: str) -> list[tuple[int, int]]:
    """Level and byte offset of each heading that stands in no list, quote or other block."""
    if not _MAYBE_HEADING.search(body):
        return []
    import pyromark

    found: list[tuple[int, int]] = []
    depth = 0
    for event, span in pyromark.events_with_range(body):
        if not isinstance(event, dict):
            continue
        if "Start" in event:
            level = _level(event["Start"])
            if depth == 0 and level:
                found.append((level, span["start"]))
            depth += 1
        elif "End" in event:
            depth -= 1
    return found


def _level(started: Any) -> int:
    if isinstance(started, dict) and "Heading" in started:
        return int(started["Heading"]["level"][1:])
    return 0


def _heading_text(line: str) -> str:
    """The text behind the marks, without the closing marks that CommonMark allows."""
    text = line.strip(" \t\n").lstrip("#").strip(" \t")
    return _CLOSING_MARKS.sub("", text).strip(" \t")


def _by_section(headings: list[_Heading]) -> list[list[_Heading]]:
    """For each level-2 heading the `### gate` headings up to the next one."""
    found: list[list[_Heading]] = []
    for heading in headings:
        if heading.level == 2:
            found.append([])
        elif found and heading.level == 3 and heading.text == "gate":
            found[-1].append(heading)
    return found


def _section(data: bytes, heading: _Heading, end: int, gates: list[_Heading]) -> Section:
    text, skipped = _trim(data[heading.end : gates[0].start if gates else end])
    first_line = heading.place.line + 1 + skipped
    if not gates:
        return Section(heading.text, heading.place, text, first_line)
    rubric, _ = _trim(data[gates[0].end : end])
    extra = tuple(gate.place for gate in gates[1:])
    return Section(heading.text, heading.place, text, first_line, rubric or None, gates[0].place, extra)


def _trim(data: bytes) -> tuple[str, int]:
    """The text without blank lines at its ends, and how many were cut in front."""
    text = data.decode("utf-8")
    lead = _LEADING_BLANKS.match(text)
    cut = lead.end() if lead else 0
    kept = text[cut:]
    last = len(kept.rstrip())
    line_end = kept.find("\n", last)
    return (kept if line_end < 0 else kept[:line_end]) if last else "", text.count("\n", 0, cut)


_OPENING = re.compile(r"---[ \t]*\n")
_CLOSING = re.compile(r"^---[ \t]*(?:\n|\Z)", re.MULTILINE)
_MAYBE_HEADING = re.compile(r"^ {0,3}#", re.MULTILINE)
_CLOSING_MARKS = re.compile(r"(?:^|[ \t]+)#+$")
_LEADING_BLANKS = re.compile(r"(?:[ \t]*\n)*")
