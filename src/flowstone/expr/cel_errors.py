"""The CEL library's complaints → orun's wording: one place for the words of all CEL errors."""

from __future__ import annotations

import re

import msgspec

STEPS = 10_000
"""Steps of all comprehensions together that one evaluation may take; the library's fixed limit."""
LEVELS = 32
"""Levels of nesting of an expression; the library's fixed limit."""


class CelProblem(msgspec.Struct, frozen=True):
    """Why an expression does not compile; `offset` counts characters from its start."""

    message: str
    offset: int = 0


class CelError(ValueError):
    """An evaluation failed; the message is one line for people."""


def compile_problems(text: str, source: str) -> tuple[CelProblem, ...]:
    """What the library said about a source that does not compile, place by place."""
    if "recursion limit" in text or "max recursion depth" in text:
        hint = "split it over several outputs"
        return (CelProblem(f"the expression is nested more than {LEVELS} levels deep; {hint}"),)
    found: list[CelProblem] = []
    for line, column, message in re.findall(_COMPLAINT, text, re.MULTILINE):
        if int(line) < 1:
            continue
        syntax = message.startswith("Syntax error")
        if not (syntax and found):
            found.append(CelProblem(_compile_words(message), _offset(source, int(line), int(column))))
    return tuple(found) or (CelProblem(_bare(text)),)


def evaluation_error(text: str) -> CelError:
    """What the library said about an evaluation, in the words of orun."""
    if "Iteration budget exceeded" in text:
        return CelError(f"the expression takes more than {STEPS:,} steps")
    message = _bare(text)
    for pattern, words in _EVALUATION:
        found = re.search(pattern, message)
        if found is not None:
            return CelError(found.expand(words))
    return CelError(message)


def _compile_words(message: str) -> str:
    for pattern, words in _COMPILATION:
        found = re.match(pattern, message)
        if found is not None:
            return found.expand(words)
    return message.replace(" (in container '')", "")


def _offset(source: str, line: int, column: int) -> int:
    start = 0
    for _ in range(line - 1):
        start = source.find("\n", start) + 1
    return min(start + column - 1, len(source))


def _bare(text: str) -> str:
    """The message without the status code in front and behind, and without quoted source."""
    first = text.split("\n", 1)[0]
    return re.sub(r" \[[A-Z_]+\]$", "", re.sub(r"^[A-Z_]+: ", "", first))


_COMPLAINT = r"ERROR: <input>:(-?\d+):(-?\d+): (.*?)(?: \[INVALID_ARGUMENT\])?$"
_COMPILATION = (
    (r"Syntax error: mismatched input '<EOF>'.*", "syntax error: the expression ends too early"),
    (r"Syntax error: token recognition error at: (.*)$", r"syntax error at \1"),
    (
        r"Syntax error: (?:mismatched|extraneous) input ('.*') expecting.*",
        r"syntax error: unexpected \1",
    ),
    (r"Syntax error: ", "syntax error: "),
    (
        r"found no matching overload for ('.*') applied to '(.*)'",
        r"no such overload: \1 for \2",
    ),
)
_EVALUATION = (
    (r"Key not found in map : \"(.*)\"$", r"no such key: \1"),
    (r"Key not found in map : (.*)$", r"no such key: \1"),
    (r"No matching overloads found : <jump_condition>", "no such overload: a condition must be a bool"),
    (r"No matching overloads found : (.*)$", r"no such overload: \1"),
    (r"Applying SELECT to non-message type", "no such overload: only a map has fields"),
    (r"Index error: index=(-?\d+) size=(\d+)", r"index out of bounds: \1"),
    (r"Index error: expected integer type, got (.*)", r"no such overload: a list index of type \1"),
    (r"divide by zero", "division by zero"),
)
