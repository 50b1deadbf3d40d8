"""A checked CEL expression in its serialized form → one whose `map` and `filter` take linear time and memory.

The library adds each element to a copy of the list so far, and frees no copy before the end: a `map` over
10,000 elements takes seconds and 1.5 GB. So these macros are told to gather short lists and to
join them at the end, which gives the same value.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import count

from flowstone.expr.cel_ast import read_varint

CHUNK = 128
"""Elements that are gathered before they are set aside; joining takes one step for each such list."""

_ACCUMULATOR = b"@result"
_JOINED = b"@joined"
_PART = b"@part"
_FIRST_ID = 1 << 32
"""Above the ids of all nodes that the library makes itself."""

_EXPR, _SELECT, _CALL, _LIST, _STRUCT, _ENTRY, _MACRO = range(7)
_BELOW: Mapping[int, Mapping[int, int]] = {
    _EXPR: {5: _SELECT, 6: _CALL, 7: _LIST, 8: _STRUCT, 9: _MACRO},
    _SELECT: {1: _EXPR},
    _CALL: {1: _EXPR, 3: _EXPR},
    _LIST: {1: _EXPR},
    _STRUCT: {2: _ENTRY},
    _ENTRY: {3: _EXPR, 4: _EXPR},
    _MACRO: {2: _EXPR, 4: _EXPR, 5: _EXPR, 6: _EXPR, 7: _EXPR},
}
"""By kind of message (`cel.expr.Expr` and its parts) the kind of what its fields hold."""


def in_chunks(serialized: bytes) -> bytes | None:
    """The expression with every macro that builds a list rewritten; None if there is none."""
    envelope = dict(_fields(serialized))
    checked = list(_fields(envelope[2]))
    expression = next(data for number, data in checked if number == 4)
    assert isinstance(expression, bytes)
    rewritten = _Rewriting().message(_EXPR, expression)
    if rewritten == expression:
        return None
    body = b"".join(_field(number, rewritten if number == 4 else data) for number, data in checked)
    return _field(1, envelope[1]) + _field(2, body)


class _Rewriting:
    def __init__(self) -> None:
        self._ids = count(_FIRST_ID)

    def message(self, kind: int, data: bytes) -> bytes:
        below = _BELOW[kind]
        fields = [
            (number, self.message(below[number], value) if number in below and isinstance(value, bytes) else value)
            for number, value in _fields(data)
        ]
        if kind == _MACRO:
            fields = self._macro(fields)
        return b"".join(_field(number, value) for number, value in fields)

    def _macro(self, fields: list[tuple[int, bytes | int]]) -> list[tuple[int, bytes | int]]:
        """A comprehension that adds to a list gets two: full short ones, and the one that fills."""
        found = dict(fields)
        step = self._gathering(found[6])
        if found.get(3) != _ACCUMULATOR or step is None or not _is_empty_list(found[4]):
            return fields
        found[4] = self._list(self._list(), self._list())
        found[6] = step
        found[7] = self._call(b"_+_", self._joined(), self._half(1))
        return list(found.items())

    def _gathering(self, step: bytes | int) -> bytes | None:
        """The loop's step with `@result + [element]` in it replaced; None if it is none that adds elements."""
        call = _call_of(step)
        if call is None:
            return None
        function, arguments = call
        if function == b"_+_" and len(arguments) == 2 and _name_of(arguments[0]) == _ACCUMULATOR:
            element = _only_element(arguments[1])
            return None if element is None else self._added(element)
        if function == b"_?_:_" and _name_of(arguments[2]) == _ACCUMULATOR:
            added = self._gathering(arguments[1])
            return None if added is None else self._call(function, arguments[0], added, arguments[2])
        return None

    def _added(self, element: bytes) -> bytes:
        """A list that is full is set aside, and the element begins a new one."""
        return self._list(
            self._choice(self._half(0), self._call(b"_+_", self._half(0), self._list(self._half(1)))),
            self._call(b"_+_", self._choice(self._half(1), self._list()), self._list(element)),
        )

    def _choice(self, room: bytes, full: bytes) -> bytes:
        fits = self._call(b"_<_", self._call(b"size", self._half(1)), self._number(CHUNK))
        return self._call(b"_?_:_", fits, room, full)

    def _joined(self) -> bytes:
        """The lists that were set aside, as one."""
        fields = (
            (1, _PART),
            (2, self._half(0)),
            (3, _JOINED),
            (4, self._list()),
            (5, self._node(3, _field(2, 1))),
            (6, self._call(b"_+_", self._name(_JOINED), self._name(_PART))),
            (7, self._name(_JOINED)),
        )
        return self._node(9, b"".join(_field(number, value) for number, value in fields))

    def _half(self, index: int) -> bytes:
        return self._call(b"_[_]", self._name(_ACCUMULATOR), self._number(index))

    def _call(self, function: bytes, *arguments: bytes) -> bytes:
        return self._node(6, _field(2, function) + b"".join(_field(3, argument) for argument in arguments))

    def _list(self, *elements: bytes) -> bytes:
        return self._node(7, b"".join(_field(1, element) for element in elements))

    def _name(self, name: bytes) -> bytes:
        return self._node(4, _field(1, name))

    def _number(self, value: int) -> bytes:
        return self._node(3, _field(3, value))

    def _node(self, number: int, data: bytes) -> bytes:
        return _field(2, next(self._ids)) + _field(number, data)


def _call_of(expression: bytes | int) -> tuple[bytes, list[bytes]] | None:
    """The function and the arguments of a call without a receiver."""
    call = _part(expression, 6)
    if call is None:
        return None
    fields = list(_fields(call))
    function = next(value for number, value in fields if number == 2)
    assert isinstance(function, bytes)
    return function, [value for number, value in fields if number == 3 and isinstance(value, bytes)]


def _name_of(expression: bytes) -> bytes | int | None:
    ident = _part(expression, 4)
    return None if ident is None else dict(_fields(ident)).get(1)


def _only_element(expression: bytes) -> bytes | None:
    elements = _part(expression, 7)
    found = [] if elements is None else [value for _, value in _fields(elements)]
    return found[0] if len(found) == 1 and isinstance(found[0], bytes) else None


def _is_empty_list(expression: bytes | int) -> bool:
    return _part(expression, 7) == b""


def _part(expression: bytes | int, number: int) -> bytes | None:
    found = dict(_fields(expression)).get(number)
    return found if isinstance(found, bytes) else None


def _fields(data: bytes | int) -> Iterator[tuple[int, bytes | int]]:
    """The fields of a protocol buffer message in order; only constants have any of a fixed width."""
    assert isinstance(data, bytes)
    at = 0
    while at < len(data):
        key, at = read_varint(data, at)
        if key & 7 == 0:
            value, at = read_varint(data, at)
            yield key >> 3, value
        else:
            size, at = read_varint(data, at)
            yield key >> 3, data[at : at + size]
            at += size


def _field(number: int, value: bytes | int) -> bytes:
    if isinstance(value, int):
        return _varint(number << 3) + _varint(value)
    return _varint(number << 3 | 2) + _varint(len(value)) + value


def _varint(value: int) -> bytes:
    data = bytearray()
    while value > 0x7F:
        data.append(value & 0x7F | 0x80)
        value >>= 7
    data.append(value)
    return bytes(data)
