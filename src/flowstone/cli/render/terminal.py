"""What a terminal can show and what may be sent to it.

Text from files, models and commands is untrusted: `neutral` takes from it what could move the
cursor, change colours or turn the direction of the text.
"""

from __future__ import annotations

import os
import sys
from typing import NamedTuple, TextIO

from flowstone.errors import FlowstoneError

DEFAULT_WIDTH = 80


GREEN, RED, YELLOW, CYAN, DIM, BOLD = "32", "31", "33", "36", "2", "1"
"""Codes that `Terminal.paint` takes."""


class Terminal(NamedTuple):
    """`live`: a screen that can be redrawn; `colour`: escape sequences are welcome."""

    live: bool
    colour: bool
    width: int

    def paint(self, text: str, colour: str) -> str:
        return f"\x1b[{colour}m{text}\x1b[0m" if self.colour and text else text


def terminal_of(stream: TextIO) -> Terminal:
    """What `stream` can show. Pipes, files, `TERM=dumb`, NO_COLOR and CI get plain text."""
    from flowstone.config.environment import surroundings

    around = surroundings()
    tty = stream.isatty() and around.term != "dumb"
    return Terminal(
        live=tty and not around.ci,
        colour=tty and not around.no_color,
        width=_width(stream) if tty else DEFAULT_WIDTH,
    )


def neutral(text: str) -> str:
    """`text` with control and direction characters spelt out; line feeds and tabs stay."""
    if text.isprintable():
        return text
    return "".join(char if _harmless(char) else _spell(ord(char)) for char in text)


def one_line(text: str) -> str:
    """`neutral` text on one line, for tables and progress."""
    return neutral(text).replace("\t", " ").replace("\n", " ")


def say(text: str, stream: TextIO | None = None) -> None:
    """Print text. A reader that has gone away is no error; what the encoding lacks is spelt out."""
    stream = sys.stdout if stream is None else stream
    if stream is None or stream.closed:
        return
    try:
        stream.write(_encodable(text, stream.encoding))
        stream.flush()
    except BrokenPipeError:
        _drop(stream)
    except OSError as error:
        _drop(stream)
        raise FlowstoneError(f"{stream.name} cannot be written: {error.strerror}", code="OUTPUT_FAILED") from None


def _drop(stream: TextIO) -> None:
    """Let what is still buffered go nowhere, so that the end of the process does not try again."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def _encodable(text: str, encoding: str | None) -> str:
    if text.isascii() or encoding is None or encoding.lower() in ("utf-8", "utf8"):
        return text
    return text.encode(encoding, "backslashreplace").decode(encoding)


def _harmless(char: str) -> bool:
    """Printable, a line feed, a tab, or a blank of another script."""
    import unicodedata

    return char.isprintable() or char in "\n\t" or unicodedata.category(char) in ("Zs", "Co", "Cn")


def _spell(code: int) -> str:
    if code < 0x100:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def _width(stream: TextIO) -> int:
    try:
        return os.get_terminal_size(stream.fileno()).columns or DEFAULT_WIDTH
    except (OSError, ValueError):
        return DEFAULT_WIDTH
