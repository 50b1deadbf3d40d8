"""The `with:` of a composing step → what its target is given: checked values, and references to be resolved.

Values are checked against the declared inputs now, references when the unit is dispatched.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from flowstone.errors import InputError
from flowstone.expr.model import Expression, Literal, Reference
from flowstone.expr.refs import parse_reference
from flowstone.expr.schema import validate
from flowstone.plan.model import Param
from flowstone.plan.units import AssetTarget
from flowstone.values import Json, clip

Bound = dict[str, Expression]
"""Literals and references by the name of the input that they are for."""


class Surface(msgspec.Struct, frozen=True):
    """What can be bound: the declared inputs (or params) of one target, and who binds them, for messages.

    `fills` has inputs that nothing is bound to take their default, which a run would do by itself.
    """

    label: str
    declared: Sequence[Param]
    kind: str
    fills: bool = False


def authored(target: AssetTarget) -> Bound:
    """The `with:` of a step as it stands; a mapping with nothing but `from` is a reference."""
    given: Mapping[str, Json] = target.arguments or {}
    return {name: _expression(value) for name, value in given.items()}


def bind(surface: Surface, given: Mapping[str, Expression]) -> Bound:
    """What is bound, by name in order; InputError that names every fault."""
    declared = {param.name: param for param in surface.declared}
    faults = [_unknown(surface, name) for name in given if name not in declared]
    bound: Bound = {}
    for name, param in sorted(declared.items()):
        if name in given:
            bound[name] = given[name]
            faults += _misfits(param, given[name])
        elif surface.fills and param.has_default:
            bound[name] = Literal(param.default)
        elif surface.fills and param.required:
            faults.append(f"with.{name} is required and has no default")
    if faults:
        raise InputError(
            "\n".join(f"{surface.label}: {fault}" for fault in faults),
            code="INPUT_BINDING_INVALID",
            hint=f"Declared {surface.kind}: {_names(surface)}.",
        )
    return bound


def references_of(bound: Mapping[str, Expression]) -> tuple[Reference, ...]:
    """The references among what is bound, each once."""
    return tuple(dict.fromkeys(value for value in bound.values() if isinstance(value, Reference)))


def _expression(value: Json) -> Expression:
    if isinstance(value, dict) and len(value) == 1 and isinstance(text := value.get("from"), str):
        return parse_reference(text)
    return Literal(value)


def _misfits(param: Param, value: Expression) -> list[str]:
    schema: Any = param.schema
    if not isinstance(value, Literal) or schema is None:
        return []
    return validate(value.value, schema, f"with.{param.name}")


def _unknown(surface: Surface, name: str) -> str:
    return f"with.{clip(name, 80)} is none of the declared {surface.kind}: {_names(surface)}"


def _names(surface: Surface) -> str:
    return ", ".join(param.name for param in surface.declared) or "(none)"
