"""What a stored agent or command asks of an engine, and what becomes of it (docs/reference/assets.md)."""

from __future__ import annotations

import pytest

from flowstone.errors import FreezeError
from flowstone.formats.akm_common.prompts import UNIT
from flowstone.plan.prompts import PromptContext, messages_of
from flowstone.plan.units import LiteralEnv, LlmSpec, PromptTarget
from tests.unit.freeze.test_engines import frozen, spec_of


def test_a_persona_is_the_system_text_of_a_model():
    spec = spec_of(PromptTarget("Do.", persona="You are strict."))
    assert isinstance(spec, LlmSpec)
    context = PromptContext(run="r", step="a", unit="a:solo", params={})
    system, (role, asked) = messages_of(spec, UNIT, context)
    assert system == ("system", "You are strict.")
    assert role == "user"
    assert asked.endswith("Do.")


def test_tools_are_given_to_programs_that_take_them_as_far_as_they_are_granted():
    granted = frozen(PromptTarget("Do.", engine="ag", tools=("Read", "Bash")), allowed_tools=("Bash", "Edit"))
    assert granted.plan.steps[0].unit.spec.tools == ("Bash",)
    assert "the tools Read, which are not granted" in granted.warnings[0]
    for engine, adapter in (("sdk", "opencode-sdk"), ("fake", "llm")):
        told = frozen(PromptTarget("Do.", engine=engine, tools=("Read",)), allowed_tools=("Read",))
        (notice,) = told.notices
        assert (notice.code, notice.adapter, notice.field) == ("untranslated-field", adapter, "tools")


def test_variables_of_a_step_reach_a_program_and_are_refused_for_a_model():
    assert spec_of(PromptTarget("Do.", engine="ag", values=(LiteralEnv("A", "1"),))).env == (LiteralEnv("A", "1"),)
    with pytest.raises(FreezeError, match="binds env: A"):
        frozen(PromptTarget("Do.", values=(LiteralEnv("A", "1"),)))


def test_an_agent_that_nobody_has_is_one_of_the_programs_own():
    assert spec_of(PromptTarget("Do.", engine="ag", agent="critic")).agent == "critic"
    with pytest.raises(FreezeError, match="no agents/critic in the bundles"):
        frozen(PromptTarget("Do.", agent="critic"))
