"""Every prompt as a model gets it, byte for byte, beside the context that it is made of.

After a wanted change run `python -m tests.golden.prompts.test_prompts` and look at the difference.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace

from flowstone.formats.akm_common.prompts import JUDGE, UNIT
from flowstone.plan.prompts import PromptContext, judge_messages, messages_of
from flowstone.plan.units import LlmSpec

HERE = Path(__file__).parent
PLAIN = PromptContext(run="0199f2c4", step="review", unit="review:solo", params={"repo": "é/x", "a": [1, {"b": None}]})
ITEM = replace(PLAIN, unit="review.unit:abc", item='{"f":"one.c"}', index=3)
INPUTS = {"steps.scan.output": {"z": 1, "a": "two\nlines"}, "steps.list.output[0]": "text"}
SCHEMA = {"type": "object", "required": ["v"], "properties": {"v": {"type": "string"}}}
INSTRUCTIONS = "Review the file you were given.\n\n- `$ARGUMENTS` and {{ braces }} stay\n"
ASKED = LlmSpec(content=INSTRUCTIONS, engine="fake", endpoint="http://127.0.0.1/v1/chat/completions", model="m1")
CONTEXTS = {
    "plain": PLAIN,
    "no_params": replace(PLAIN, params={}),
    "item": ITEM,
    "inputs": replace(PLAIN, inputs=INPUTS),
    "task_inputs": replace(PLAIN, task_inputs={"level": 2, "deep": True}),
    "feedback": replace(PLAIN, unit="review:solo~l2", feedback="The date is missing.", missing=("a date", "a name")),
    "feedback_alone": replace(PLAIN, unit="review:solo~l3", feedback="Not yet."),
    "schema": replace(PLAIN, schema=SCHEMA, has_schema=True),
    "all": replace(
        ITEM,
        unit="review.unit:abc#2~l2~r1",
        inputs=INPUTS,
        task_inputs={"level": 2},
        feedback="Too short.",
        missing=("length",),
        schema=SCHEMA,
        has_schema=True,
    ),
}


def prompt(name: str) -> str:
    if name == "judge":
        messages = judge_messages("review", JUDGE, "- all of it\n\n#### deeper", 'Step "review" executed 1 unit(s).')
        return "\n=====\n".join(f"{role}: {text}" for role, text in messages)
    ((role, text),) = messages_of(ASKED, UNIT, CONTEXTS[name])
    assert role == "user"
    return text


@pytest.mark.parametrize("name", [*CONTEXTS, "judge"])
def test_prompt(name: str) -> None:
    assert prompt(name) == (HERE / f"{name}.txt").read_text(encoding="utf-8")


if __name__ == "__main__":
    for each in (*CONTEXTS, "judge"):
        (HERE / f"{each}.txt").write_text(prompt(each), encoding="utf-8")
