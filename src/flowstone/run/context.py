"""The context variables of a command: where it stands in its run, and the data that it works on."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from flowstone.plan.units import ExecSpec
from flowstone.run.identity import Identity, Opening
from flowstone.run.state import State, StepState
from flowstone.values import canonical_json


def context_variables(
    state: State, params: Mapping[str, Any], step: StepState, index: int, identity: Identity
) -> tuple[tuple[str, str], ...]:
    """The context variables of a command (akm facts 3.6); none where the plan asks for none."""
    spec = step.plan.unit.spec if step.plan.unit else None
    prefix = spec.environment.context if isinstance(spec, ExecSpec) else None
    if prefix is None:
        return ()
    opening: Opening = step.opening
    if opening.context is None:
        shared = [
            (f"{prefix}RUN_ID", state.run_id),
            (f"{prefix}STEP_ID", step.id),
            (f"{prefix}PARAMS", canonical_json(params)),
        ]
        if opening.inputs:
            shared.append((f"{prefix}INPUTS", canonical_json(opening.inputs)))
        opening.context = tuple(shared)
    own: tuple[tuple[str, str], ...] = ((f"{prefix}UNIT_ID", identity.unit),)
    if identity.item is not None:
        own += ((f"{prefix}ITEM", identity.item), (f"{prefix}ITEM_INDEX", str(index)))
    return opening.context + own
