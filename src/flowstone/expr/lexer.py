"""CEL text → tokens, as far as its neighbours need them: what is a literal, a name or a sign.

Templates find the end of a `{{ }}` segment with it, and `cel` finds step names with dashes. It
knows no grammar: what is no CEL becomes signs that the compiler then refuses at the right place.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from enum import Enum, auto
from functools import cache
from typing import NamedTuple


class Kind(Enum):
    NAME = auto()
    LITERAL = auto()
    """A number, a string, bytes, or a name in backticks."""
    SIGN = auto()


class Token(NamedTuple):
    kind: Kind
    start: int
    end: int


def tokens(text: str, start: int = 0) -> Iterator[Token]:
    """The tokens of a CEL expression from `start` on; blanks and `//` comments are left out."""
    token = _token()
    at = start
    while at < len(text):
        found = token.match(text, at)
        if found is None:
            yield Token(Kind.SIGN, at, at + 1)
            at += 1
            continue
        at = found.end()
        if found.lastgroup != "skip":
            yield Token(_KINDS[found.lastgroup or ""], found.start(), at)


_PLAIN = r"'(?:[^'\\\n\r]|\\[^\n\r])*'" + r'|"(?:[^"\\\n\r]|\\[^\n\r])*"'
_TRIPLE = r"'''(?:[^\\]|\\.)*?'''" + r'|"""(?:[^\\]|\\.)*?"""'
_RAW = r"'''.*?'''" + r'|""".*?"""' + r"|'[^'\n\r]*'" + r'|"[^"\n\r]*"'
_KINDS = {"string": Kind.LITERAL, "number": Kind.LITERAL, "name": Kind.NAME}


@cache
def _token() -> re.Pattern[str]:
    """Compiled when it is first needed: most files hold no expression."""
    return re.compile(
        r"(?P<skip>[ \t\r\n\f]+|//[^\n]*)"
        rf"|(?P<string>(?:[bB]?[rR])(?:{_RAW})|[bB]?(?:{_TRIPLE}|{_PLAIN})|`[^`\n]*`)"
        r"|(?P<name>[_a-zA-Z][_a-zA-Z0-9]*)"
        r"|(?P<number>0[xX][0-9a-fA-F]+[uU]?|[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?[uU]?)",
        re.DOTALL,
    )
