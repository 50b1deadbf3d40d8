"""What a terminal can show and what may be sent to it.

Text from files, models and commands is untrusted: `neutral` takes from it what could move the
cursor, change colours or turn the direction of the text. `say` is for people and fits the stream;
`say_document` is for programs and never changes a character.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from typing import NamedTuple, TextIO

from flowstone.errors import FlowstoneError

DEFAULT_WIDTH = 80
DEFAULT_HEIGHT = 24

GREEN, RED, YELLOW, CYAN, DIM, BOLD = "32", "31", "33", "36", "2", "1"
"""Codes that `Terminal.paint` takes."""


class Terminal(NamedTuple):
    """`live`: a screen that can be redrawn; `colour`: escape sequences are welcome."""

    live: bool
    colour: bool
    width: int
    height: int = DEFAULT_HEIGHT

    def paint(self, text: str, colour: str) -> str:
        return f"\x1b[{colour}m{text}\x1b[0m" if self.colour and text else text


def terminal_of(stream: TextIO) -> Terminal:
    """What `stream` can show. Pipes, files, terminals of an unknown kind, NO_COLOR and CI get plain text."""
    from flowstone.config.environment import surroundings

    around = surroundings()
    if not stream.isatty():
        return Terminal(live=False, colour=False, width=DEFAULT_WIDTH)
    width, height = _size(stream)
    capable = _moves_its_cursor(around.term)
    return Terminal(live=capable and not around.ci, colour=capable and not around.no_color, width=width, height=height)


def neutral(text: str) -> str:
    """`text` with control and direction characters spelt out; line feeds and tabs stay."""
    if text.isprintable():
        return text
    return "".join(char if _harmless(char) else _spell(ord(char)) for char in text)


def one_line(text: str) -> str:
    """`neutral` text on one line, for tables and progress."""
    return neutral(text).replace("\t", " ").replace("\n", " ")


def say(text: str, stream: TextIO | None = None) -> None:
    """Print text for people. A reader that has gone away is no error; what the encoding lacks is spelt out."""
    stream = sys.stdout if stream is None else stream
    if stream is not None and not stream.closed:
        _write(stream, fitted(text, stream))


def say_document(text: str) -> None:
    """Print a document for programs on stdout (JSON, YAML, HTML): in UTF-8, whatever the locale is."""
    stream = sys.stdout
    if stream is None or stream.closed:
        return
    raw = getattr(stream, "buffer", None)
    if raw is None or text.isascii() or _is_utf8(stream):
        _write(stream, text)
        return
    _write(stream, "")
    _guard(stream, lambda: (raw.write(text.encode("utf-8", "backslashreplace")), raw.flush()))


def fitted(text: str, stream: TextIO) -> str:
    """A text for people as a stream can show it: its marks in ASCII where it has no others."""
    if text.isascii() or (_is_utf8(stream) and not _is_ascii_terminal(stream)):
        return text
    encoding = stream.encoding or "utf-8"
    return text.translate(ASCII_MARKS).encode(encoding, "backslashreplace").decode(encoding)


def clipped(line: str, width: int) -> str:
    """A line that takes one row of a terminal; an ellipsis stands for what has no room."""
    import unicodedata

    cells = [2 if unicodedata.east_asian_width(char) in "WF" else 1 for char in line]
    if sum(cells) <= width:
        return line
    kept, used = 0, 1
    while used + cells[kept] <= width:
        used += cells[kept]
        kept += 1
    return f"{line[:kept]}…"


def lost_output() -> str | None:
    """What kept stdout from being written in this process; None when all of it was."""
    return _lost[0] if _lost else None


def check_stdout() -> None:
    """Raise OUTPUT_FAILED if what waits for stdout cannot be written."""
    if sys.stdout is not None and not sys.stdout.closed:
        _write(sys.stdout, "")


def _write(stream: TextIO, text: str) -> None:
    _guard(stream, lambda: (stream.write(text), stream.flush()))


def _guard(stream: TextIO, write: Callable[[], object]) -> None:
    """Write; a full stdout is told once and from then on written nowhere, of stderr nobody can be told."""
    try:
        write()
    except BrokenPipeError:
        _drop(stream)
    except OSError as error:
        _drop(stream)
        if stream is sys.stderr:
            return
        name = "stdout" if stream is sys.stdout else stream.name
        text = f"{name} cannot be written: {error.strerror}; what should have been printed is lost"
        if stream is sys.stdout:
            _lost.append(text)
        raise FlowstoneError(text, code="OUTPUT_FAILED") from None


_lost: list[str] = []


def _drop(stream: TextIO) -> None:
    """Let what is still buffered go nowhere, so that the end of the process does not try again."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def _is_utf8(stream: TextIO) -> bool:
    return stream.encoding is None or stream.encoding.lower().replace("_", "-") in ("utf-8", "utf8")


def _is_ascii_terminal(stream: TextIO) -> bool:
    """A person who has set the C locale sees no other characters, although Python writes UTF-8 there."""
    from flowstone.config.environment import surroundings

    return stream.isatty() and surroundings().ascii_locale


def _moves_its_cursor(term: str | None) -> bool:
    """Whether a kind of terminal obeys the usual escape sequences: a known family, or by its terminfo entry."""
    if term is None or term == "dumb":
        return False
    if term.startswith(FAMILIES):
        return True
    try:
        import curses

        curses.setupterm(term, fd=1)
        return bool(curses.tigetstr("cuu1") or curses.tigetstr("cuu"))
    except (ImportError, curses.error, TypeError):
        return False


FAMILIES = (
    *("xterm", "screen", "tmux", "rxvt", "linux", "vt100", "vt220", "ansi", "cygwin", "konsole", "gnome", "putty"),
    *("alacritty", "kitty", "foot", "wezterm", "iterm", "st-", "contour", "mintty"),
)
"""What the names of terminals begin with that are known to redraw, also where no terminfo is installed."""

ASCII_MARKS = str.maketrans(
    {
        **dict.fromkeys("✕✗×", "x"),
        **{"✓": "+", "▸": ">", "·": ".", "‖": "=", "⚠": "!", "│": "|", "→": "->", "←": "<-", "…": "...", "≥": ">="},
        **dict.fromkeys("–—", "-"),
        **dict.fromkeys("“”„", '"'),
        **dict.fromkeys("‘’", "'"),
        **dict(zip("⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏", "|/-\\|/-\\|/", strict=True)),
    }
)
"""How our own marks are spelt where only ASCII can be shown."""


def _harmless(char: str) -> bool:
    """Printable, a line feed, a tab, or a blank of another script."""
    import unicodedata

    return char.isprintable() or char in "\n\t" or unicodedata.category(char) in ("Zs", "Co", "Cn")


def _spell(code: int) -> str:
    if code < 0x100:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def _size(stream: TextIO) -> tuple[int, int]:
    """Columns and lines."""
    try:
        size = os.get_terminal_size(stream.fileno())
    except (OSError, ValueError):
        return DEFAULT_WIDTH, DEFAULT_HEIGHT
    return size.columns or DEFAULT_WIDTH, size.lines or DEFAULT_HEIGHT
