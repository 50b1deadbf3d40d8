"""The one sum of expressions that plans carry: what a value is read from, whatever the language.

Each expression knows the steps that it reads (`reads`), so one visibility check serves all
languages. Compiling text into these types is the work of the sibling modules.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import msgspec


class Reference(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag="reference"):
    """A bare reference `params.<name>` or `steps.<name>.output…`.

    `text` is the author's spelling; `path` holds property names and list indexes behind `output`.
    """

    text: str
    root: str
    name: str
    path: tuple[str | int, ...] = ()

    @property
    def reads(self) -> tuple[str, ...]:
        return (self.name,) if self.root == "steps" else ()


class Cel(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag="cel"):
    """A CEL expression: `source` as authored, `reads` the steps and `names` the variables it uses."""

    source: str
    reads: tuple[str, ...] = ()
    names: tuple[str, ...] = ()


class Template(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag="template"):
    """Text with `{{ }}` segments; one that is a single segment keeps the native type of its value."""

    parts: tuple[str | Cel, ...]

    @property
    def reads(self) -> tuple[str, ...]:
        return tuple(name for part in self.parts if isinstance(part, Cel) for name in part.reads)

    @property
    def native(self) -> bool:
        return len(self.parts) == 1 and isinstance(self.parts[0], Cel)


class Literal(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag="literal"):
    """A JSON value as it stands."""

    value: Any

    @property
    def reads(self) -> tuple[str, ...]:
        return ()


class Items(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag="items"):
    """A list whose members may hold expressions."""

    members: tuple[Expression, ...]

    @property
    def reads(self) -> tuple[str, ...]:
        return tuple(name for member in self.members for name in member.reads)


class Record(msgspec.Struct, frozen=True, eq=False, forbid_unknown_fields=True, tag="record", omit_defaults=True):
    """A mapping whose values may hold expressions, in authored order.

    `lines` are those of the values in their file, and `label` names the whole: both for errors. Records
    that differ in their lines alone are equal.
    """

    fields: tuple[tuple[str, Expression], ...]
    lines: tuple[int, ...] = ()
    label: str = ""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Record) and self.fields == other.fields and self.label == other.label

    def __hash__(self) -> int:
        return hash((self.fields, self.label))

    @property
    def reads(self) -> tuple[str, ...]:
        return tuple(name for _, value in self.fields for name in value.reads)


Expression: TypeAlias = Reference | Cel | Template | Literal | Items | Record
Text: TypeAlias = str | Template
"""A text that is final, or is filled in just before the dispatch."""
