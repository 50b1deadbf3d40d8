"""The context of a unit: where it stands in its run and the data that it works on, as variables or as a prompt."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from flowstone.plan.prompts import Messages, PromptContext, messages_of
from flowstone.plan.units import AgentSpec, ExecSpec, LlmSpec
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
        if opening.given:
            shared.append((f"{prefix}TASK_INPUTS", canonical_json(opening.given)))
        opening.context = tuple(shared)
    own: tuple[tuple[str, str], ...] = ((f"{prefix}UNIT_ID", identity.unit),)
    if identity.item is not None:
        own += ((f"{prefix}ITEM", identity.item), (f"{prefix}ITEM_INDEX", str(index)))
    return opening.context + own


def unit_messages(state: State, params: Mapping[str, Any], step: StepState, index: int, identity: Identity) -> Messages:
    """What a unit's model or agent is told; nothing for units that no one talks to."""
    unit = step.plan.unit
    if unit is None or not isinstance(unit.spec, (LlmSpec, AgentSpec)):
        return ()
    opening: Opening = step.opening
    rejected = step.feedback
    context = PromptContext(
        run=state.run_id,
        step=step.id,
        unit=identity.unit,
        params=params,
        item=identity.item,
        index=index,
        inputs=opening.inputs,
        task_inputs=opening.given,
        feedback=rejected.feedback if rejected is not None else None,
        missing=rejected.missing if rejected is not None else (),
        schema=unit.schema,
        has_schema=unit.has_schema,
    )
    return messages_of(unit.spec, state.plan.policies.preamble, context)
