"""The asset envelope of the front matter: the keys that every Markdown asset has."""

from __future__ import annotations

import re
from collections.abc import Callable

import msgspec

from flowstone.formats.akm_common.fields import read_object, read_trimmed
from flowstone.formats.akm_markdown import grammar
from flowstone.source.cursor import Cursor
from flowstone.source.tree import Mapping, Scalar
from flowstone.values import clip


class Envelope(msgspec.Struct, frozen=True):
    """What a workflow keeps of its envelope."""

    description: str | None = None
    tags: tuple[str, ...] = ()


def read_envelope(found: dict[str, Cursor]) -> Envelope:
    """Check every envelope key among the root keys `found`."""
    for key, read in _READERS.items():
        if key in found:
            read(found[key])
    description = found["description"].text() if "description" in found else None
    tags = _read_tags(found["tags"]) if "tags" in found else ()
    return Envelope(description, tags)


def _read_tags(at: Cursor) -> tuple[str, ...]:
    tags = (_read_tag(entry.named(f"{at.what} entry")) for entry in at.items())
    return tuple(tag for tag in tags if tag is not None)


def _read_tag(at: Cursor) -> str | None:
    """A tag is text also where YAML sees a number: `1.10` keeps its spelling."""
    node = at.node
    if isinstance(node, Scalar) and isinstance(node.value, (int, float)) and not isinstance(node.value, bool):
        return node.text
    return read_trimmed(at)


def _read_type(at: Cursor) -> None:
    text = at.text()
    if text is not None and text != "workflow":
        message = f'"type" must be workflow in a workflow file, got "{clip(text, 80)}".'
        at.error("invalid-value", message, "write type: workflow, or leave the key out")


_PART = r"[A-Za-z0-9_][A-Za-z0-9_.-]*"
_XREF = re.compile(rf"(?:{_PART}//)?{_PART}(?:/{_PART})+")


def _read_xrefs(at: Cursor) -> None:
    for entry in at.items():
        ref = entry.named(f"{at.what} entry").text()
        if ref is not None and not _XREF.fullmatch(ref):
            message = f'{at.what} holds "{clip(ref, 80)}", which is no canonical ref.'
            entry.error("invalid-ref", message, "write [bundle//]type/name")


def _read_stamp(at: Cursor) -> None:
    found = at.mapping(grammar.STAMP_KEYS)
    if not isinstance(at.node, Mapping):
        return
    if "by" in found:
        found["by"].text(empty=False)
    else:
        at.error("missing-key", f'{at.what} requires "by".', "write who: by: name")
    if "at" in found:
        found["at"].text()


def _read_stamps(at: Cursor) -> None:
    if isinstance(at.node, Mapping):
        _read_stamp(at)
        return
    for entry in at.items():
        _read_stamp(entry)


_READERS: dict[str, Callable[[Cursor], object]] = {
    "type": _read_type,
    "when_to_use": Cursor.text,
    "updated": Cursor.text,
    "timestamp": Cursor.text,
    "stale_after": Cursor.text,
    "xrefs": _read_xrefs,
    "generated": _read_stamp,
    "verified": _read_stamps,
    "provenance": read_object,
    "status": lambda at: at.one_of(*grammar.STATUSES),
}
