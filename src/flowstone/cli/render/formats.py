"""Envelopes to text in the format that a user asked for, and that text to where it should go.

A verb makes one envelope (plain JSON data). JSON, JSON lines and YAML are written from it as it
stands; text, Markdown and HTML from the verb's own writer where it has one, else generically.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping
from enum import StrEnum
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from flowstone.cli.render.terminal import neutral, say, say_document
from flowstone.errors import UsageError

if TYPE_CHECKING:
    from flowstone.values import Json


class Format(StrEnum):
    JSON = "json"
    JSONL = "jsonl"
    YAML = "yaml"
    TEXT = "text"
    MD = "md"
    HTML = "html"


class Detail(StrEnum):
    BRIEF = "brief"
    NORMAL = "normal"
    FULL = "full"


class Output(NamedTuple):
    """The options that every verb has. `file` None is stdout."""

    format: Format = Format.JSON
    file: str | None = None
    detail: Detail = Detail.NORMAL
    quiet: bool = False
    verbose: bool = False

    def warn(self, text: str) -> None:
        """A line on stderr, unless the user wants quiet."""
        if not self.quiet:
            from flowstone.views.text import short_unit

            say(f"warning: {neutral(short_unit(text))}\n", sys.stderr)


Envelope: TypeAlias = dict[str, Any]
Writer: TypeAlias = Callable[[Envelope], str]
BULKY = frozenset({"instructions", "evidence", "completionCriteria", "content", "diagnostic", "plan"})
"""Fields of steps and units that `--detail brief` leaves out."""


def emit(envelope: Envelope, output: Output, writers: Mapping[Format, Writer] | None = None) -> None:
    """Write an envelope as `output` says. `writers` are the verb's own for some formats."""
    if output.detail is Detail.BRIEF:
        envelope = without(envelope, BULKY)
    writer = (writers or {}).get(output.format) or GENERIC[output.format]
    text = writer(envelope)
    deliver(text if text.endswith("\n") else text + "\n", output)


def deliver(text: str, output: Output) -> None:
    """Text to stdout, or to the file in one piece."""
    if output.file is None and output.format is Format.TEXT:
        say(text)
    elif output.file is None:
        say_document(text)
    else:
        write_file(output.file, text)


def write_file(path: str, text: str) -> None:
    """Replace a file at once; UsageError when that cannot be."""
    temporary = f"{path}.{os.getpid()}.tmp"
    try:
        if os.path.exists(path) and not os.path.isfile(path):
            with open(path, "w", encoding="utf-8") as device:
                device.write(text)
            return
        with open(temporary, "w", encoding="utf-8", newline="") as file:
            file.write(text)
        os.replace(temporary, path)
    except OSError as error:
        if os.path.exists(temporary):
            os.unlink(temporary)
        raise UsageError(f"{path} cannot be written: {error.strerror}") from None


def without(value: Json, names: frozenset[str]) -> Json:
    """A value in which no object has the fields `names`."""
    if isinstance(value, dict):
        return {name: without(inner, names) for name, inner in value.items() if name not in names}
    if isinstance(value, list):
        return [without(item, names) for item in value]
    return value


def as_json(envelope: Envelope) -> str:
    from flowstone.values import pretty_json

    return _safe(pretty_json(envelope))


def as_json_lines(envelope: Envelope) -> str:
    """The rows of the envelope's list, one a line; an envelope without a list is one line."""
    import json

    rows = next((value for value in envelope.values() if isinstance(value, list)), None)
    items = [envelope] if rows is None or "run" in envelope else rows
    return "".join(_safe(json.dumps(item, ensure_ascii=False, separators=(",", ":"))) + "\n" for item in items)


def as_yaml(envelope: Envelope) -> str:
    import json

    import yaml

    plain = json.loads(json.dumps(envelope))  # the words of enums as texts, tuples as lists
    return yaml.dump(plain, Dumper=yaml.CSafeDumper, sort_keys=False, allow_unicode=True, default_flow_style=False)


def as_text(envelope: Envelope) -> str:
    return "\n".join(_text_lines(envelope, ""))


def as_markdown(envelope: Envelope) -> str:
    return "\n".join(_markdown_lines(envelope, 2))


def as_html(envelope: Envelope) -> str:
    from html import escape

    title = escape(str(envelope.get("shape", "flowstone")))
    return (
        f'<!doctype html>\n<html lang="en"><meta charset="utf-8"><title>{title}</title>\n'
        f"<h1>{title}</h1>\n<pre>{escape(as_text(envelope))}</pre>\n</html>"
    )


def _safe(text: str) -> str:
    """JSON in which characters that a terminal could obey are spelt as escapes."""
    return text if text.isascii() and "\x7f" not in text else _escape(text)


def _escape(text: str) -> str:
    import re

    pattern = r"[\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]"
    return re.sub(pattern, lambda match: f"\\u{ord(match[0]):04x}", text)


def _text_lines(value: Json, indent: str) -> list[str]:
    if isinstance(value, dict):
        return [line for name, inner in value.items() for line in _text_field(name, inner, indent)]
    lines: list[str] = []
    for item in value if isinstance(value, list) else [value]:
        inner = _text_lines(item, indent + "  ") if isinstance(item, (dict, list)) else [_scalar(item)]
        lines.append(f"{indent}- {inner[0].strip()}" if inner else f"{indent}-")
        lines.extend(inner[1:])
    return lines


def _text_field(name: str, value: Json, indent: str) -> list[str]:
    label = f"{indent}{neutral(name)}:"
    if isinstance(value, (dict, list)):
        return [label, *_text_lines(value, indent + "  ")] if value else [f"{label} none"]
    text = _scalar(value)
    if "\n" in text:
        return [label, *(f"{indent}  {line}" for line in text.splitlines())]
    return [f"{label} {text}".rstrip()]


def _scalar(value: Json) -> str:
    match value:
        case str():
            return neutral(value)
        case None:
            return "none"
        case bool():
            return "yes" if value else "no"
        case _:
            return str(value)


def _markdown_lines(value: Envelope, level: int) -> list[str]:
    plain = [f"- **{neutral(name)}**: {_scalar(inner)}" for name, inner in value.items() if not _nested(inner)]
    lines = [*plain, ""] if plain else []
    for name, inner in value.items():
        if _nested(inner):
            lines += [f"{'#' * min(level, 6)} {neutral(name)}", ""]
            lines += _markdown_lines(inner, level + 1) if isinstance(inner, dict) else _markdown_list(inner, level)
    return lines


def _markdown_list(rows: list[Json], level: int) -> list[str]:
    if not all(isinstance(row, dict) for row in rows):
        return [*(f"- {_scalar(row)}" for row in rows), ""]
    return [line for row in rows for line in [*_markdown_lines(row, level + 1), "---", ""]][:-2]


def _nested(value: Json) -> bool:
    return isinstance(value, (dict, list)) and bool(value)


GENERIC: dict[Format, Writer] = {
    Format.JSON: as_json,
    Format.JSONL: as_json_lines,
    Format.YAML: as_yaml,
    Format.TEXT: as_text,
    Format.MD: as_markdown,
    Format.HTML: as_html,
}
