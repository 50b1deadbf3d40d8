"""The source tree: YAML nodes with their places, before any language gives them meaning.

`read_yaml` builds it from text; the parsers of the languages walk it. A scalar keeps its spelling,
so that `1.10` can be text where text is meant.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import msgspec

from flowstone.diagnostics import Place


class Scalar(msgspec.Struct, frozen=True):
    """`value` by the YAML 1.2 core schema (None, bool, int, float or str); `text` as authored.

    `plain` is False for quoted and block scalars, whose value is always their text.
    """

    value: Any
    text: str
    place: Place
    plain: bool = True


class Sequence(msgspec.Struct, frozen=True):
    items: tuple[Node, ...]
    place: Place


class Entry(msgspec.Struct, frozen=True):
    """A key with its value. `name` is the key's text; `key` its node (a key may be any scalar)."""

    name: str
    key: Scalar
    value: Node


class Mapping(msgspec.Struct, frozen=True):
    """Entries in authored order. Where keys may not repeat, the reader has refused repetitions."""

    entries: tuple[Entry, ...]
    place: Place

    def get(self, name: str) -> Node | None:
        return next((entry.value for entry in self.entries if entry.name == name), None)

    def entry(self, name: str) -> Entry | None:
        return next((entry for entry in self.entries if entry.name == name), None)


Node: TypeAlias = Scalar | Sequence | Mapping


def plain(node: Node) -> Any:
    """The JSON value of a tree: mappings become dicts, sequences lists, scalars their values."""
    match node:
        case Scalar():
            return node.value
        case Sequence():
            return [plain(item) for item in node.items]
        case Mapping():
            return {entry.name: plain(entry.value) for entry in node.entries}
