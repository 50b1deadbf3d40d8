"""What libyaml says about a syntax error → what an author can act on; used by `read_yaml`."""

from __future__ import annotations

from typing import Any


def explain(error: Any, text: str) -> tuple[str, Any, str | None]:
    """The message, the mark of the place and the hint for an error of the YAML library."""
    problem = getattr(error, "problem", None) or str(error).split("\n", 1)[0]
    context = getattr(error, "context", None)
    mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None) or _START
    opening = getattr(error, "context_mark", None)
    if problem in _UNFINISHED and context and "quoted" in context and opening is not None:
        return (
            "invalid YAML: a quoted text is never closed",
            opening,
            "close it with the quote it begins with",
        )
    if problem == "found character that cannot start any token":
        return _bad_start(text, mark)
    if problem.startswith("mapping values") and mark.column > _KEY_LIMIT:
        return (
            "invalid YAML: a key has more than 1,024 characters",
            mark,
            'shorten it, or write it behind "? "',
        )
    message, hint = _PLAIN.get(problem, (problem, None))
    where = f" {context}" if context and problem not in _PLAIN else ""
    return f"invalid YAML: {message}{where}", mark, hint


def explain_unreadable(char: str) -> str:
    """The message for a character that no YAML text may hold."""
    kind = "half of a surrogate pair" if "\ud800" <= char <= "\udfff" else "control character"
    return f"invalid YAML: the {kind} U+{ord(char):04X} is not allowed"


def exceeds_depth(error: Any) -> bool:
    """Whether the library gave up at its own bound of nesting, which it meets while it looks ahead."""
    return "nesting depth" in str(getattr(error, "problem", ""))


class _Mark:
    line = 0
    column = 0
    index = 0


def _bad_start(text: str, mark: Any) -> tuple[str, Any, str | None]:
    found = text[mark.index : mark.index + 1]
    if found == "\t":
        return "invalid YAML: a tab cannot indent", mark, "indent with spaces"
    return f'invalid YAML: a plain text cannot begin with "{found}"', mark, "put the text in quotes"


_START = _Mark()
_KEY_LIMIT = 1000
_UNFINISHED = frozenset({"found unexpected end of stream", "found unexpected document indicator"})
_PLAIN: dict[str, tuple[str, str | None]] = {
    "mapping values are not allowed in this context": (
        "mapping values are not allowed in this context",
        'put a text that holds ": " in quotes, or check the indentation',
    ),
    "did not find expected key": ("a key is expected here", "check the indentation and the quotes above"),
    "did not find expected '-' indicator": (
        'a "-" is expected here, as in the lines above',
        "check the indentation",
    ),
    "could not find expected ':'": ('the ":" behind a key is missing', "write `key: value`"),
    "did not find expected ',' or ']'": ('a "," or "]" is missing', "close the list"),
    "did not find expected ',' or '}'": ('a "," or "}" is missing', "close the mapping"),
    "did not find expected node content": ("a value is expected here", "close the list or mapping"),
    "did not find expected <document start>": (
        "nothing more is expected here",
        "check the indentation and the quotes above",
    ),
    "found unknown escape character": (
        "there is no such escape in double quotes",
        "write a backslash twice, or use single quotes",
    ),
    "found invalid Unicode character escape code": (
        "the escape is no character",
        "write the character itself",
    ),
    "block sequence entries are not allowed in this context": (
        'a list entry ("- ") is not allowed here',
        "begin it on a line of its own, or put the text in quotes",
    ),
}
