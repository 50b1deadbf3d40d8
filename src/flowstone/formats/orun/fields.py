"""Cursors → the values that keys of orun's files hold: texts as they are spelt, names with texts, integers.

Shared by the parsers of workflows, jobs and blueprints; an absent key and a null one are the same.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from flowstone.formats.orun import grammar
from flowstone.formats.orun.document import Named, Retry
from flowstone.source.cursor import Cursor, describe
from flowstone.source.tree import Entry, Mapping, Scalar, Sequence

Read = TypeVar("Read")
Keys = dict[str, Cursor]


def optional(keys: Keys, key: str, read: Callable[[Cursor], Read | None]) -> Read | None:
    """What `read` makes of a key; None where it is absent or null."""
    cursor = keys.get(key)
    return None if cursor is None or cursor.is_null else read(cursor)


def named(keys: Keys, key: str, read: Callable[[str, Cursor], Read | None]) -> tuple[Read, ...]:
    found = (read(name, cursor) for name, cursor in mapping_of(keys.get(key)).items())
    return tuple(value for value in found if value is not None)


def mapping_of(cursor: Cursor | None, allowed: tuple[str, ...] | None = None) -> Keys:
    return {} if cursor is None or cursor.is_null else cursor.mapping(allowed)


def items_of(cursor: Cursor | None) -> list[Cursor]:
    return [] if cursor is None or cursor.is_null else cursor.items()


def entries_of(cursor: Cursor | None) -> tuple[Entry, ...]:
    mapping_of(cursor)
    return cursor.node.entries if cursor is not None and isinstance(cursor.node, Mapping) else ()


def texts(keys: Keys, key: str) -> tuple[Scalar, ...]:
    found = (scalar_text(item) for item in items_of(keys.get(key)))
    return tuple(text for text in found if text is not None)


def scalar_text(cursor: Cursor, null: bool = False) -> Scalar | None:
    """A scalar as text, as it is spelt: `1.50` and `true` are texts where text is meant."""
    node = cursor.node
    if isinstance(node, Scalar) and (null or node.value is not None):
        return node if node.value is not None else Scalar("", "", node.place)
    hint = "quote it" if isinstance(node, (Mapping, Sequence)) else 'write "" for an empty text'
    cursor.error("text-required", f"{cursor.what} must be a text, got {describe(node)}.", hint)
    return None


def whole_number(cursor: Cursor) -> int | None:
    node = cursor.node
    if isinstance(node, Scalar) and isinstance(node.value, int) and not isinstance(node.value, bool):
        return node.value
    cursor.error("integer-required", f"{cursor.what} must be an integer, got {describe(node)}.")
    return None


def expression(name: str, cursor: Cursor) -> Named | None:
    text = scalar_text(cursor, null=True)
    return Named(name, cursor.key_place, text) if text is not None else None


def variable(name: str, cursor: Cursor) -> Named | None:
    text = scalar_text(cursor)
    return Named(name, cursor.key_place, text) if text is not None else None


def retry(cursor: Cursor) -> Retry:
    keys = cursor.mapping(grammar.RETRY_KEYS)
    return Retry(
        place=cursor.key_place,
        max_retries=optional(keys, "maxRetries", whole_number),
        base_delay=optional(keys, "baseDelay", scalar_text),
        kind=optional(keys, "kind", scalar_text),
    )
