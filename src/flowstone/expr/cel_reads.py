"""A CEL syntax tree → what the expression reads: `steps.<name>`, `inputs.<name>` and so on.

The visibility check and the evaluation both go by this list, never by the text, so that a string
literal that looks like a reference is none and the bracket form is one.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from flowstone.expr.cel_ast import Ast, Call, Comprehension, Const, Group, Ident, Select


class Read(msgspec.Struct, frozen=True):
    """One place where an expression reads a variable.

    `name` is the key read of it, None where the whole variable or a computed key is read; `field`
    the key read of that again. `offset` counts characters from the start of the expression. `present`:
    only whether `name` is there is asked, by `has()`.
    """

    root: str
    name: str | None
    field: str | None
    offset: int
    present: bool = False


def reads_of(tree: Ast) -> tuple[Read, ...]:
    """Every read of a variable, in the order of the source."""
    return tuple(sorted(_walk(tree, frozenset()), key=lambda read: read.offset))


def _walk(node: Ast, bound: frozenset[str]) -> Iterator[Read]:
    path = _path(node, bound)
    if path is not None:
        root, keys = path
        name = keys[0] if keys else None
        present = len(keys) == 1 and isinstance(node, Select) and node.test
        yield Read(root.name, name, keys[1] if len(keys) > 1 else None, root.offset, present)
        return
    for inner in _parts(node):
        yield from _walk(inner, bound)
    if isinstance(node, Comprehension):
        for inner in node.body:
            yield from _walk(inner, bound | set(node.names))


def _parts(node: Ast) -> tuple[Ast, ...]:
    """The direct parts of a node in which the same names are bound."""
    match node:
        case Comprehension():
            return node.over
        case Select():
            return (node.operand,)
        case Call():
            return node.arguments
        case Group():
            return node.members
        case Const() | Ident():
            return ()


def _path(node: Ast, bound: frozenset[str]) -> tuple[Ident, tuple[str, ...]] | None:
    """A variable followed by literal keys only, or None."""
    match node:
        case Ident():
            return None if node.name in bound else (node, ())
        case Select():
            return _longer(_path(node.operand, bound), node.field)
        case Call(function="_[_]", arguments=(operand, Const(text=str() as key))):
            return _longer(_path(operand, bound), key)
        case _:
            return None


def _longer(path: tuple[Ident, tuple[str, ...]] | None, key: str) -> tuple[Ident, tuple[str, ...]] | None:
    return None if path is None else (path[0], (*path[1], key))
