"""A CEL syntax tree and the sizes of its variables → a bound on what evaluating it may build.

The library bounds steps but not memory: four nested `replace` calls can make terabytes of a short
text. So before an expression that can multiply sizes is evaluated, this works out how large a
value could get, and one that could exceed the limit is refused.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

from flowstone.expr.cel_ast import Ast, Call, Comprehension, Const, Group, Ident, Select
from flowstone.expr.cel_errors import STEPS, CelError

LIMIT = 256 * 1024 * 1024
"""Bytes that any one value of an evaluation may reach."""

_ELEMENT_BYTES = 8
"""What each element of a list or map counts at least, wherever its size comes from."""

Bound: TypeAlias = dict[str, int]
"""At most `bound[""]` bytes, and for each other name so many times the size of that macro variable."""


def multiplies(tree: Ast) -> bool:
    """Whether evaluating it can make much more of its variables than they are."""
    match tree:
        case Call(function=function, arguments=arguments):
            return function in _MULTIPLIERS or any(map(multiplies, arguments))
        case Select(operand=operand):
            return multiplies(operand)
        case Group(members=members):
            return any(map(multiplies, members))
        case Comprehension():
            return any(map(_grows, tree.body)) or any(map(multiplies, (*tree.over, *tree.body)))
        case Const() | Ident():
            return False


def check_size(tree: Ast, sizes: Mapping[str, int]) -> None:
    """Raise CelError if a value could exceed the limit; `sizes` are bytes by variable."""
    _Sizer(sizes).bound(tree)


def size_of(value: object) -> int:
    """About the bytes of a value that is passed in."""
    match value:
        case str():
            return len(value) if value.isascii() else 4 * len(value)
        case dict():
            return sum(len(key) + 8 + size_of(item) for key, item in value.items())
        case list():
            return sum(8 + size_of(item) for item in value)
    return 8


def _grows(node: Ast) -> bool:
    """Whether a macro's body joins texts or lists, beyond adding to the macro's own result."""
    match node:
        case Call(function="_+_", arguments=(Ident(name="@result"), added)):
            return _grows(added)
        case Call(function=function, arguments=arguments):
            return function == "_+_" or any(map(_grows, arguments))
        case Select(operand=operand):
            return _grows(operand)
        case Group(members=members):
            return bool(members[1:]) or any(map(_grows, members))
        case Comprehension():
            return True
        case Const() | Ident():
            return False


class _Sizer:
    def __init__(self, sizes: Mapping[str, int]) -> None:
        self._sizes = sizes
        self._largest: dict[str, int] = {}

    def bound(self, node: Ast) -> Bound:
        found = self._bound(node)
        if self._most(found) > LIMIT:
            raise CelError(f"the expression could build a value of more than {LIMIT // 2**20} MiB")
        return found

    def _bound(self, node: Ast) -> Bound:
        match node:
            case Const(text=text):
                return {"": 4 * len(text or "") + 8}
            case Ident(name=name):
                return {name: 1} if name in self._largest else {"": self._sizes.get(name, 8)}
            case Select(operand=operand):
                return self.bound(operand)
            case Group(members=members):
                return _sum([{"": 8 * len(members) + 8}, *map(self.bound, members)])
            case Call():
                return self._call(node)
            case Comprehension():
                return self._comprehension(node)

    def _call(self, call: Call) -> Bound:
        arguments = [self.bound(argument) for argument in call.arguments]
        if call.function in _SMALL:
            return {"": 8}
        match call.function:
            case "replace" if len(arguments) >= 3:
                return _sum([arguments[0], _times(arguments[0], self._most(arguments[2]))])
            case "join" if len(arguments) == 2:
                return _sum([arguments[0], _times(arguments[0], self._most(arguments[1]))])
            case "split" | "quote" | "strings.quote":
                return _times(_sum(arguments), 8)
            case "format":
                return _sum([{"": 1024 * self._most(_sum(arguments[:1]))}, *arguments])
            case "_[_]":
                return arguments[0]
            case "_?_:_":
                return _sum(arguments[1:])
            case _:
                return _sum(arguments)

    def _comprehension(self, node: Comprehension) -> Bound:
        """The sizes of a list's elements sum up to that of the list, so what is linear stays so."""
        over = self.bound(node.over[0])
        names = [name for name in node.names if name != "@result"]
        before = {name: self._largest.get(name) for name in (*names, "@result")}
        self._largest.update(dict.fromkeys(names, self._most(over)), **{"@result": 0})
        added = _sum([self.bound(part) for part in node.body])
        for name, largest in before.items():
            if largest is None:
                del self._largest[name]
            else:
                self._largest[name] = largest
        added.pop("@result", None)
        times = min(self._most(over) // _ELEMENT_BYTES + 1, STEPS)
        linear = sum(added.pop(name, 0) for name in names)
        return _sum([_times(added, times), _times(over, linear)])

    def _most(self, bound: Bound) -> int:
        return sum(times * (self._largest[name] if name else 1) for name, times in bound.items())


def _sum(bounds: list[Bound]) -> Bound:
    total: Bound = {"": 0}
    for bound in bounds:
        for name, times in bound.items():
            total[name] = total.get(name, 0) + times
    return total


def _times(bound: Bound, factor: int) -> Bound:
    return {name: times * factor for name, times in bound.items()}


_COMPARISONS = ("_==_", "_!=_", "_<_", "_<=_", "_>_", "_>=_", "_&&_", "_||_", "!_", "@in", "@not_strictly_false")
_TESTS = ("contains", "startsWith", "endsWith", "matches", "size", "indexOf", "lastIndexOf", "charAt")
_SMALL = frozenset((*_COMPARISONS, *_TESTS, "int", "uint", "double", "bool"))
_MULTIPLIERS = frozenset({"replace", "join", "format"})
