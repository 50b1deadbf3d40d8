"""Any expression of a plan and a scope → its value, whatever the language."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, assert_never

import msgspec

from flowstone.expr import cel
from flowstone.expr.cel_errors import CelError
from flowstone.expr.cel_values import to_json, type_of
from flowstone.expr.model import Cel, Expression, Items, Literal, Record, Reference, Template, Text
from flowstone.expr.templates import render, render_text
from flowstone.values import Json


class Scope(msgspec.Struct, frozen=True):
    """What expressions may read.

    `params` and `artifacts` (a step's artifact by its id) serve references. `variables` gives a
    variable of CEL by its name, and only those that an expression reads are asked for; `steps`,
    `inputs` and `connections` are mappings of which only the keys named are looked up, so a lazy
    mapping costs what is read. A variable that is not there raises KeyError.
    """

    params: Mapping[str, Json]
    artifacts: Callable[[str], Json]
    variables: Callable[[str], Any]


def evaluate_expression(expression: Expression, scope: Scope) -> Json:
    """The JSON value of an expression. CelError (NotJson) tells why there is none."""
    match expression:
        case Literal():
            return expression.value
        case Reference():
            from flowstone.expr.refs import resolve

            return resolve(expression, scope.params, scope.artifacts)
        case Cel():
            return to_json(evaluate_cel(expression, scope))
        case Template():
            return to_json(render(expression, lambda part: evaluate_cel(part, scope)))
        case Items():
            return [evaluate_expression(member, scope) for member in expression.members]
        case Record():
            return {name: evaluate_expression(value, scope) for name, value in expression.fields}
        case _:
            assert_never(expression)


def evaluate_text(text: Text, scope: Scope) -> str:
    """The final text of an argument, of an environment value or of a working directory."""
    return render_text(text, lambda part: evaluate_cel(part, scope))


def evaluate_condition(condition: Cel, scope: Scope) -> bool:
    """The value of a condition; one that is no bool raises CelError (orun decision 4)."""
    value = evaluate_cel(condition, scope)
    if not isinstance(value, bool):
        raise CelError(f"must be a bool, got {type_of(value)}")
    return value


def evaluate_cel(expression: Cel, scope: Scope) -> Any:
    """The native value of a CEL expression that was checked when its plan was made."""
    compiled = cel.compile_cel(expression.source, cel.POLL_UNTIL)
    if isinstance(compiled, cel.CelRefused):
        raise CelError(compiled.problems[0].message)
    return cel.evaluate(compiled, _Asked(expression.names, scope.variables))


class _Asked(Mapping[str, Any]):
    """The variables that an expression names, fetched when they are looked up."""

    def __init__(self, names: tuple[str, ...], variables: Callable[[str], Any]) -> None:
        self._names = names
        self._variables = variables

    def __getitem__(self, name: str) -> Any:
        return self._variables(name)

    def __iter__(self) -> Any:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)

    def __contains__(self, name: object) -> bool:
        return name in self._names
