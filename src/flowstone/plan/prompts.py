"""What a model or an agent is told: a unit's instructions, byte for byte, with its context around them.

Data never enters the instructions: it stands beside them under headings of its own (akm facts 10.1).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import msgspec

from flowstone.plan.model import Preamble
from flowstone.plan.units import EngineSpec
from flowstone.values import Json, canonical_json

Messages = tuple[tuple[str, str], ...]
"""(role, text) pairs in order."""


class PromptContext(msgspec.Struct, frozen=True):
    """Where a unit stands in its run, and the data that it works on.

    `item` is the canonical spelling of a fan-out's item, `inputs` are the attached artifacts by
    reference as written, `feedback` and `missing` what a gate found wanting in the execution before.
    """

    run: str
    step: str
    unit: str
    params: Mapping[str, Json]
    item: str | None = None
    index: int = 0
    inputs: Mapping[str, Json] = {}
    task_inputs: Mapping[str, Json] = {}
    feedback: str | None = None
    missing: tuple[str, ...] = ()
    schema: Any = None
    has_schema: bool = False


def messages_of(spec: EngineSpec, preamble: Preamble, context: PromptContext) -> Messages:
    """The one message of a unit, behind its persona where it has one."""
    asked = ("user", unit_prompt(spec.content, preamble, context))
    return (("system", spec.persona), asked) if spec.persona else (asked,)


def unit_prompt(instructions: str, preamble: Preamble, context: PromptContext) -> str:
    """The whole prompt of a unit, in the order of akm facts 10.1."""
    return "".join(
        (
            _preamble(preamble, context),
            instructions,
            _item(context),
            _inputs(context),
            _task_inputs(context),
            _feedback(context),
            _schema(context),
        )
    )


def judge_messages(step: str, system: str, rubric: str, account: str) -> Messages:
    """What a judge is told: its task, and the rubric byte for byte with the account of the work."""
    user = (
        f"Step: {step}\n\nCompletion criteria:\n1. {rubric}\n\n"
        f"Agent's summary of work done:\n{account}\n\nReturn the JSON verdict now."
    )
    return (("system", system), ("user", user))


def _preamble(preamble: Preamble, context: PromptContext) -> str:
    if not preamble.intro:
        return ""
    unit = context.unit.partition("~")[0]  # without the marks of loops and repetitions
    rules = "".join(f"{number}. {rule}\n" for number, rule in enumerate(preamble.rules, 1))
    return (
        f"{preamble.intro}\n\n"
        f"- Workflow run: {context.run}\n"
        f"- Step: {context.step}\n"
        f"- Unit: {unit}\n"
        f"- Run parameters: {_in_order(context.params)}\n\n"
        f"Ground rules for this unit:\n{rules}\n"
        f"{preamble.closing}\n\n---\n"
    )


def _in_order(value: Json) -> str:
    """Compact JSON with the keys in their given order."""
    return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))


def _item(context: PromptContext) -> str:
    if context.item is None:
        return ""
    return (
        f"\n\n## Item (index {context.index})\n"
        f"The item that this unit works on; the other items of the list are the work of other units:\n{context.item}"
    )


def _inputs(context: PromptContext) -> str:
    if not context.inputs:
        return ""
    blocks = (f"### {reference}\n{canonical_json(value)}" for reference, value in context.inputs.items())
    return "\n\n## Declared inputs\n" + "\n\n".join(blocks)


def _task_inputs(context: PromptContext) -> str:
    if not context.task_inputs:
        return ""
    return f"\n\n## Task inputs\n```json\n{canonical_json(context.task_inputs)}\n```"


def _feedback(context: PromptContext) -> str:
    if context.feedback is None:
        return ""
    missing = "".join(f"\n- {criterion}" for criterion in context.missing)
    return (
        "\n\n## Completion-gate feedback (previous attempt rejected)\n"
        "The result of the attempt before this one was not good enough. Do the work again and mend this:\n"
        f"{context.feedback}" + (f"\n\nUnmet criteria:{missing}" if missing else "")
    )


def _schema(context: PromptContext) -> str:
    if not context.has_schema:
        return ""
    return (
        "\n\nRespond with ONLY a JSON value matching this JSON Schema (no prose, no code fences):\n"
        f"{canonical_json(context.schema)}"
    )
