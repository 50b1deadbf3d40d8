"""Source tree → typed values: a walk that reports what does not fit, for the languages' parsers.

A cursor stands on one node and knows its path, its place and what to call it; every reading
method reports a type error itself and then returns None (an empty dict or list for collections).
"""

from __future__ import annotations

import math
from collections.abc import Sequence as SequenceOf

from flowstone.diagnostics import Place, Report
from flowstone.source.tree import Mapping, Node, Scalar, Sequence, plain
from flowstone.values import Json, clip


class Cursor:
    """One node of a tree. `path` is dotted and indexed (`steps[0].unit.timeout`), "" at the root.

    `place` is where diagnostics go: the node, or its key where the node begins on a later line.
    `key_place` is where its key stands. `what` names the node in messages, `"<path>"` unless told.
    """

    __slots__ = ("_report", "key_place", "node", "path", "place", "what")

    def __init__(self, node: Node, path: str, report: Report, place: Place, what: str | None = None) -> None:
        self.node = node
        self.path = path
        self.place = node.place if node.place.line == place.line else place
        self.key_place = place
        self.what = what or (f'"{path}"' if path else "The document")
        self._report = report

    def named(self, what: str) -> Cursor:
        """The same node under another name, such as `Step "a" "timeout"`."""
        return Cursor(self.node, self.path, self._report, self.key_place, what)

    def mapping(
        self, allowed: SequenceOf[str] | None = None, code: str = "unknown-key", label: str | None = None
    ) -> dict[str, Cursor]:
        """The values by key, in authored order; with `allowed`, other keys are reported and left out.

        `label` replaces `Unknown key` in front of the key's name in that report.
        """
        if not isinstance(self.node, Mapping):
            self._mistyped("a mapping", "mapping-required")
            return {}
        found: dict[str, Cursor] = {}
        for entry in self.node.entries:
            if allowed is not None and entry.name not in allowed:
                self._unknown(entry.name, entry.key.place, allowed, code, label)
            else:
                path = f"{self.path}.{entry.name}" if self.path else entry.name
                found[entry.name] = Cursor(entry.value, path, self._report, entry.key.place)
        return found

    def items(self) -> list[Cursor]:
        """The members of a list."""
        if not isinstance(self.node, Sequence):
            self._mistyped("a list", "sequence-required")
            return []
        return [
            Cursor(item, f"{self.path}[{index}]", self._report, item.place)
            for index, item in enumerate(self.node.items)
        ]

    def text(self, empty: bool = True) -> str | None:
        """A string; without `empty`, one that is blank is refused too (it comes back as authored)."""
        if not isinstance(self.node, Scalar) or not isinstance(self.node.value, str):
            self._mistyped("a string", "string-required", quotable=True)
            return None
        if not empty and not self.node.value.strip():
            self.error("string-required", f"{self.what} must be a non-empty string.")
            return None
        return self.node.value

    def integer(self, low: int | None = None, high: int | None = None) -> int | None:
        """An integer within the bounds; a number without a fraction, such as 2.0, is one."""
        value = self.node.value if isinstance(self.node, Scalar) else None
        if isinstance(value, float) and value.is_integer():
            value = int(value)
        wanted = _integer_range(low, high)
        if isinstance(value, bool) or not isinstance(value, int):
            self._mistyped(wanted, "integer-required")
            return None
        if (low is not None and value < low) or (high is not None and value > high):
            self.error("out-of-range", f"{self.what} must be {wanted}, got {clip(str(value), 40)}.")
            return None
        return value

    def number(self) -> int | float | None:
        """A finite number."""
        value = self.node.value if isinstance(self.node, Scalar) else None
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not _finite(value):
            self._mistyped("a finite number", "number-required")
            return None
        return value

    def boolean(self) -> bool | None:
        value = self.node.value if isinstance(self.node, Scalar) else None
        if not isinstance(value, bool):
            hint = "write true or false" if value in {"yes", "no", "on", "off"} else None
            self._mistyped("true or false", "boolean-required", hint)
            return None
        return value

    def one_of(self, *choices: str) -> str | None:
        """One of the words."""
        wanted = "one of " + ", ".join(choices)
        if not isinstance(self.node, Scalar) or not isinstance(self.node.value, str):
            self._mistyped(wanted, "invalid-value")
            return None
        if self.node.value not in choices:
            hint = suggest(self.node.value, choices)
            shown = clip(self.node.value, 80)
            self.error("invalid-value", f'{self.what} must be {wanted}, got "{shown}".', hint)
            return None
        return self.node.value

    def value(self) -> Json:
        """The JSON value; None with a report for a number that JSON does not have (`.nan`)."""
        bad = _first_infinite(self.node)
        if bad is not None:
            message = f"{self.what} holds {bad.text}, which is no JSON number."
            self._report.error("number-required", message, bad.place)
            return None
        return plain(self.node)

    @property
    def is_null(self) -> bool:
        return isinstance(self.node, Scalar) and self.node.value is None

    def error(self, code: str, message: str, hint: str | None = None) -> None:
        """Report a mistake at this node; for a missing key, call it on the mapping that lacks it."""
        self._report.error(code, message, self.place, hint)

    def warn(self, code: str, message: str, hint: str | None = None) -> None:
        self._report.warn(code, message, self.place, hint)

    def _mistyped(self, wanted: str, code: str, hint: str | None = None, quotable: bool = False) -> None:
        if quotable and isinstance(self.node, Scalar) and self.node.text:
            hint = f'quote it: "{clip(self.node.text, 40)}"'
        self.error(code, f"{self.what} must be {wanted}, got {describe(self.node)}.", hint)

    def _unknown(self, name: str, place: Place, allowed: SequenceOf[str], code: str, label: str | None) -> None:
        keys = f"Allowed keys: {', '.join(allowed)}." if allowed else "It has no keys."
        where = "" if label or not self.path else f" in {self.what}"
        message = f'{label or "Unknown key"} "{clip(name, 80)}"{where}. {keys}'
        self._report.error(code, message, place, suggest(name, allowed))


def suggest(word: str, known: SequenceOf[str]) -> str | None:
    """`did you mean "x"?` where a known word is close."""
    from difflib import get_close_matches

    close = get_close_matches(word[:80], known, n=1, cutoff=0.65)
    return f'did you mean "{close[0]}"?' if close else None


def describe(node: Node) -> str:
    """What a node is, for `got …`: a list, a mapping, null or the scalar as authored."""
    match node:
        case Sequence():
            return "a list"
        case Mapping():
            return "a mapping"
        case Scalar(value=None):
            return "null"
        case Scalar(value=str()):
            return f'the string "{clip(node.text, 40)}"' if node.text else "an empty string"
        case _:
            return clip(node.text, 40)


def _integer_range(low: int | None, high: int | None) -> str:
    if low is not None and high is not None:
        return f"an integer from {low} to {high}"
    if low is not None:
        return f"an integer of at least {low}"
    return "an integer" if high is None else f"an integer of at most {high}"


def _finite(value: int | float) -> bool:
    return isinstance(value, int) or math.isfinite(value)


def _first_infinite(node: Node) -> Scalar | None:
    match node:
        case Scalar():
            return node if isinstance(node.value, float) and not math.isfinite(node.value) else None
        case Sequence():
            inner: SequenceOf[Node] = node.items
        case Mapping():
            inner = [entry.value for entry in node.entries]
    return next((bad for bad in map(_first_infinite, inner) if bad is not None), None)
