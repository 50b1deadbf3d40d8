"""Any expression of a plan and a scope → its value, whatever the language."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, assert_never

import msgspec

from flowstone.expr import cel
from flowstone.expr.cel_errors import CelError
from flowstone.expr.model import Cel, Expression, Items, Literal, Record, Reference, Template
from flowstone.expr.templates import render
from flowstone.values import Json


class Scope(msgspec.Struct, frozen=True):
    """What expressions may read.

    `params` and `artifacts` (the artifact of a step by its id) serve references. `variables` gives a
    variable of CEL by its name, for the steps that the expression reads: it is asked for what is
    read only, and of `steps`, `inputs` and `connections` only the keys named are looked up.
    """

    params: Mapping[str, Json]
    artifacts: Mapping[str, Json]
    variables: Callable[[str, tuple[str, ...]], Any]


def evaluate_expression(expression: Expression, scope: Scope) -> Any:
    """The native value of an expression; CelError or Unresolved tells why there is none.

    `to_json` makes a value fit to be kept of it, `stringify` the text of an argument.
    """
    match expression:
        case Literal():
            return expression.value
        case Reference():
            from flowstone.expr.refs import resolve

            return resolve(expression, scope.params, scope.artifacts)
        case Cel():
            return evaluate_cel(expression, scope)
        case Template():
            return render(expression, lambda part: evaluate_cel(part, scope))
        case Items():
            return [_member(f"[{index}]", member, scope) for index, member in enumerate(expression.members)]
        case Record():
            return _record(expression, scope)
        case _:
            assert_never(expression)


def evaluate_cel(expression: Cel, scope: Scope) -> Any:
    """The native value of a CEL expression that was checked when its plan was made."""
    compiled = cel.compile_cel(expression.source, cel.environment_of(expression.names))
    if isinstance(compiled, cel.CelRefused):
        raise CelError(compiled.problems[0].message)
    return cel.evaluate(compiled, _Asked(expression, scope.variables))


class Misplaced(ValueError):
    """No value can be had of a part of a mapping or a list: which part, in which line, and why not."""

    def __init__(self, path: str, line: int | None, why: str) -> None:
        super().__init__(f"{path.removeprefix('.')}{f' (line {line})' if line else ''}: {why}")
        self.path = path
        self.line = line
        self.why = why


def _record(record: Record, scope: Scope) -> dict[str, Any]:
    lines: Iterable[int | None] = record.lines or (None for _ in record.fields)
    return {
        name: _member(f"{record.label}.{name}", value, scope, line)
        for (name, value), line in zip(record.fields, lines, strict=False)
    }


def _member(part: str, expression: Expression, scope: Scope, line: int | None = None) -> Any:
    try:
        return evaluate_expression(expression, scope)
    except Misplaced as error:
        raise Misplaced(f"{part}{error.path}", error.line or line, error.why) from None
    except ValueError as error:
        raise Misplaced(part, line, str(error)) from None


class _Asked(Mapping[str, Any]):
    """The variables that an expression names, fetched when they are looked up."""

    def __init__(self, expression: Cel, variables: Callable[[str, tuple[str, ...]], Any]) -> None:
        self._names = expression.names
        self._steps = expression.reads
        self._variables = variables

    def __getitem__(self, name: str) -> Any:
        return self._variables(name, self._steps)

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)

    def __contains__(self, name: object) -> bool:
        return name in self._names
