"""Diagnostics → what people and programs read: text with the source line, JSON, SARIF.

Nothing from a source reaches a terminal raw: control characters are shown as escapes.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Iterable, Sequence
from typing import TypeAlias

from flowstone.diagnostics import SHOWN, WHOLE_FILE, Diagnostic, Severity
from flowstone.values import Json

_Painter: TypeAlias = Callable[[str, str], str]


def render_text(path: str, text: str, diagnostics: Sequence[Diagnostic], colour: bool = False) -> str:
    """The diagnostics of one file, sorted as given, each with its source line and a caret.

    `text` is the source with LF line ends; the result ends with a newline unless it is empty.
    Beyond `SHOWN` diagnostics one line counts the rest.
    """
    paint = _paint if colour else _plain
    lines = text.split("\n")
    shown = [row for diagnostic in diagnostics[:SHOWN] for row in _rows(path, lines, diagnostic, paint)]
    hidden = len(diagnostics) - SHOWN
    if hidden > 0:
        shown.append(f"… and {hidden} more ({len(diagnostics)} in all)")
    return "".join(f"{row}\n" for row in shown)


def to_json(path: str, diagnostics: Iterable[Diagnostic]) -> list[dict[str, Json]]:
    """One object a diagnostic: path, line, column, severity, code, message and, where known, hint.

    Line and column are null where the file as a whole is meant.
    """
    return [
        {
            "path": path,
            "line": found.place.line or None,
            "column": found.place.column or None,
            "severity": str(found.severity),
            "code": found.code,
            "message": found.message,
            **({"hint": found.hint} if found.hint else {}),
        }
        for found in diagnostics
    ]


def to_sarif(files: Iterable[tuple[str, Iterable[Diagnostic]]]) -> dict[str, Json]:
    """A SARIF 2.1.0 log of one run over the files, given as pairs of path and diagnostics."""
    found = [(path, diagnostic) for path, diagnostics in files for diagnostic in diagnostics]
    codes = sorted({diagnostic.code for _, diagnostic in found})
    numbers = {code: number for number, code in enumerate(codes)}
    return {
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [
            {
                "tool": {"driver": {"name": "flowstone", "rules": [{"id": code} for code in codes]}},
                "columnKind": "unicodeCodePoints",
                "results": [_sarif_result(path, diagnostic, numbers) for path, diagnostic in found],
            }
        ],
    }


def visible(text: str) -> str:
    """The text with control, format and half characters written as escapes."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(_cell(char)[0] if char != "\t" else "\\t" for char in text)


def _rows(path: str, lines: list[str], found: Diagnostic, paint: _Painter) -> list[str]:
    place = f"{visible(path)}:" + (f"{found.place.line}:{found.place.column}:" if found.place.line else "")
    word = paint(str(found.severity) + ":", _SEVERITY_COLOURS[found.severity])
    rows = [f"{paint(place, _BOLD)} {word} {visible(found.message)} [{found.code}]"]
    if 1 <= found.place.line <= len(lines):
        rows.extend(_source_rows(lines[found.place.line - 1], found, paint))
    if found.hint:
        rows.append(f"  {paint('hint:', _CYAN)} {visible(found.hint)}")
    return rows


def _source_rows(line: str, found: Diagnostic, paint: _Painter) -> list[str]:
    number = str(found.place.line)
    before, after, cut_front, cut_back = _window(line, found.place.column - 1)
    head, width = _cells(before)
    tail, _ = _cells(after)
    head, width = ("…" + head, width + 1) if cut_front else (head, width)
    gutter = " " * len(number)
    return [
        f"  {paint(f'{number} |', _DIM)} {head}{tail}{'…' if cut_back else ''}".rstrip(),
        f"  {paint(f'{gutter} |', _DIM)} {' ' * width}{paint('^', _SEVERITY_COLOURS[found.severity])}",
    ]


def _window(line: str, at: int) -> tuple[str, str, bool, bool]:
    """What is shown on both sides of the caret, and whether something was cut there."""
    at = max(0, min(at, len(line)))
    start = 0 if at <= _AROUND + _SLACK else at - _AROUND
    end = len(line) if len(line) - at <= _AROUND + _SLACK else at + _AROUND
    return line[start:at], line[at:end], start > 0, end < len(line)


def _cells(text: str) -> tuple[str, int]:
    """The text as shown, tabs as blanks, and the columns of a terminal that it takes."""
    if text.isascii() and text.isprintable():
        return text, len(text)
    cells = [_cell(char) for char in text]
    return "".join(shown for shown, _ in cells), sum(width for _, width in cells)


def _cell(char: str) -> tuple[str, int]:
    if char == "\t":
        return "    ", 4
    category = unicodedata.category(char)
    if category in _HIDDEN:
        shown = f"\\x{ord(char):02x}" if ord(char) < 0x100 else f"\\u{ord(char):04x}"
        return shown, len(shown)
    if category in {"Mn", "Me"}:
        return char, 0
    return char, 2 if unicodedata.east_asian_width(char) in {"W", "F"} else 1


def _sarif_result(path: str, found: Diagnostic, numbers: dict[str, int]) -> dict[str, Json]:
    location: dict[str, Json] = {"artifactLocation": {"uri": _uri(path)}}
    if found.place != WHOLE_FILE:
        location["region"] = {"startLine": found.place.line, "startColumn": found.place.column}
    return {
        "ruleId": found.code,
        "ruleIndex": numbers[found.code],
        "level": str(found.severity),
        "message": {"text": f"{found.message} ({found.hint})" if found.hint else found.message},
        "locations": [{"physicalLocation": location}],
    }


def _uri(path: str) -> str:
    from urllib.parse import quote

    quoted = quote(path.replace("\\", "/"), safe="/", errors="surrogatepass")
    return f"file://{quoted}" if quoted.startswith("/") else quoted


def _plain(text: str, style: str) -> str:
    return text


def _paint(text: str, style: str) -> str:
    return f"\x1b[{style}m{text}\x1b[0m"


_AROUND = 60
_SLACK = 10
_HIDDEN = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})
_BOLD, _DIM, _CYAN = "1", "2", "36"
_SEVERITY_COLOURS = {Severity.ERROR: "1;31", Severity.WARNING: "1;33"}
