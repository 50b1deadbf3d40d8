"""A checked CEL expression in its serialized form → a small syntax tree with offsets.

The library gives no tree, only the protocol buffer `cel.expr.CheckedExpr`; this module reads the
part of it that tells which variables an expression reads, and where.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeAlias

import msgspec


class Const(msgspec.Struct, frozen=True):
    """A literal; `text` is set for a string."""

    offset: int
    text: str | None = None


class Ident(msgspec.Struct, frozen=True):
    offset: int
    name: str


class Select(msgspec.Struct, frozen=True):
    """`operand.field`, or `has(operand.field)` if `test`."""

    offset: int
    operand: Ast
    field: str
    test: bool


class Call(msgspec.Struct, frozen=True):
    """A function or operator; the receiver of a method stands first among the arguments."""

    offset: int
    function: str
    arguments: tuple[Ast, ...]


class Group(msgspec.Struct, frozen=True):
    """A list, map or message literal: only its members matter here."""

    offset: int
    members: tuple[Ast, ...]


class Comprehension(msgspec.Struct, frozen=True):
    """What a macro such as `map` expands to. `names` are bound inside `body` only."""

    offset: int
    names: tuple[str, ...]
    over: tuple[Ast, ...]
    body: tuple[Ast, ...]


Ast: TypeAlias = Const | Ident | Select | Call | Group | Comprehension


def read_ast(serialized: bytes) -> Ast:
    """The tree of a serialized expression; offsets count characters of the source."""
    checked = _message(_message(serialized)[2][-1])
    info = _message(checked[5][-1])
    return _expression(checked[4][-1], dict(map(_position, info.get(4, ()))))


def _expression(data: _Field, offsets: dict[int, int]) -> Ast:
    fields = _message(data)
    offset = offsets.get(_number(fields, 2), 0)
    if 4 in fields:
        return Ident(offset, _text(_message(fields[4][-1]), 1).removeprefix("."))
    if 5 in fields:
        select = _message(fields[5][-1])
        operand = _expression(select[1][-1], offsets)
        return Select(offset, operand, _text(select, 2), bool(_number(select, 3)))
    if 6 in fields:
        call = _message(fields[6][-1])
        arguments = (*call.get(1, ()), *call.get(3, ()))
        return Call(offset, _text(call, 2), tuple(_expression(item, offsets) for item in arguments))
    if 7 in fields:
        elements = _message(fields[7][-1]).get(1, ())
        return Group(offset, tuple(_expression(item, offsets) for item in elements))
    if 8 in fields:
        return Group(offset, tuple(_members(fields[8][-1], offsets)))
    if 9 in fields:
        return _comprehension(_message(fields[9][-1]), offset, offsets)
    constant = _message(fields[3][-1]) if 3 in fields else {}
    return Const(offset, _text(constant, 6) if 6 in constant else None)


def _members(data: _Field, offsets: dict[int, int]) -> Iterator[Ast]:
    for entry in _message(data).get(2, ()):
        fields = _message(entry)
        for number in (3, 4):
            if number in fields:
                yield _expression(fields[number][-1], offsets)


def _comprehension(fields: _Fields, offset: int, offsets: dict[int, int]) -> Comprehension:
    names = tuple(_text(fields, number) for number in (1, 3, 8) if number in fields)
    over = tuple(_expression(fields[number][-1], offsets) for number in (2, 4) if number in fields)
    body = tuple(_expression(fields[number][-1], offsets) for number in (5, 6, 7) if number in fields)
    return Comprehension(offset, names, over, body)


_Field: TypeAlias = bytes | int
_Fields: TypeAlias = dict[int, list[_Field]]


def _message(data: _Field) -> _Fields:
    """The fields of a protocol buffer message by number, repeated ones in order."""
    assert isinstance(data, bytes)
    fields: _Fields = {}
    at, end = 0, len(data)
    while at < end:
        key, at = (data[at], at + 1) if data[at] < _LONG else read_varint(data, at)
        kind = key & 7
        value: _Field
        if kind in _FIXED:
            value, at = data[at : at + _FIXED[kind]], at + _FIXED[kind]
        else:
            number, at = (data[at], at + 1) if data[at] < _LONG else read_varint(data, at)
            value = number
            if kind:
                value, at = data[at : at + number], at + number
        if key >> 3 in fields:
            fields[key >> 3].append(value)
        else:
            fields[key >> 3] = [value]
    return fields


def read_varint(data: bytes, at: int) -> tuple[int, int]:
    """A number of variable length at a place, and the place behind it."""
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < _LONG:
            return value, at
        shift += 7


def _position(entry: _Field) -> tuple[int, int]:
    """The id of a node and its offset; most are two numbers of one byte, and there is one for each node."""
    if isinstance(entry, bytes) and len(entry) == 4 and entry[1] < _LONG and entry[::2] == _SHORT:
        return entry[1], entry[3]
    fields = _message(entry)
    return _number(fields, 1), _number(fields, 2)


def _number(fields: _Fields, number: int) -> int:
    value = fields[number][-1] if number in fields else 0
    assert isinstance(value, int)
    return value


def _text(fields: _Fields, number: int) -> str:
    value = fields[number][-1] if number in fields else b""
    assert isinstance(value, bytes)
    return value.decode("utf-8")


_LONG = 0x80
"""From here on a byte of a number says that another one follows."""
_FIXED = {1: 8, 5: 4}
"""Bytes of a value by its kind, where the kind says it."""
_SHORT = b"\x08\x10"
