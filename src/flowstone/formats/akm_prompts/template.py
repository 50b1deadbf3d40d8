"""The text of a command and its arguments → instructions: `$ARGUMENTS` is the one thing that is replaced."""

from __future__ import annotations

import re

TOKEN = "$ARGUMENTS"
_CONSTRUCTS = (
    (re.compile(r"\$\{[^}\n]*\}?"), "a braced variable"),
    (re.compile(r"\$\([^)\n]*\)?"), "a command substitution"),
    (re.compile(r"\$[0-9]+"), "a positional argument"),
    (re.compile(r"\$ARGUMENTS[A-Za-z0-9_]+"), "a longer name than $ARGUMENTS"),
    (re.compile(r"\$(?!ARGUMENTS\b)[A-Za-z_][A-Za-z0-9_]*"), "a variable"),
    (re.compile(r"\{\{|\}\}"), "a template expression"),
)


def expand(template: str, arguments: str = "") -> str:
    """The instructions. What is put in is not looked at again, so it may hold anything."""
    return arguments.join(template.split(TOKEN))


def foreign_construct(template: str) -> tuple[str, int] | None:
    """What a template holds that looks like a substitution and would stay as it is, and where it begins."""
    found = ((match.start(), match[0], what) for pattern, what in _CONSTRUCTS if (match := pattern.search(template)))
    first = min(found, default=None)
    if first is None:
        return None
    start, text, what = first
    return f'"{text[:40]}", which looks like {what}: only {TOKEN} is replaced in a command', start
