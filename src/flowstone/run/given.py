"""What a step binds to the inputs of its target → their values, when the step opens."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from flowstone.expr.model import Literal, Reference
from flowstone.expr.refs import Unresolved
from flowstone.plan.model import Step
from flowstone.values import Json


def given_values(step: Step, resolve: Callable[[Reference], Json]) -> dict[str, Any]:
    """The values by name, empty where nothing is bound; Unresolved for one that is missing or does not fit."""
    given = step.unit.given if step.unit is not None else None
    if given is None:
        return {}
    return {
        name: value.value if isinstance(value, Literal) else _resolved(step.id, name, value, given.schemas, resolve)
        for name, value in given.values.fields
    }


def _resolved(step: str, name: str, value: Any, schemas: dict[str, Any], resolve: Callable[[Reference], Json]) -> Json:
    from flowstone.expr.schema import validate

    label = f'Step "{step}" with.{name} ({value.text})'
    try:
        found = resolve(value)
    except Unresolved as error:
        raise Unresolved(f"{label} failed to resolve: {error}") from None
    faults = validate(found, schemas[name], f"with.{name}") if name in schemas else []
    if faults:
        raise Unresolved(f"{label} does not fit the input: {'; '.join(faults)}")
    return found
