"""Which engine, model, tuning, timeout and width a unit freezes (akm facts 9.1, 9.2, 3.9)."""

from __future__ import annotations

import pytest

from flowstone.errors import ConfigError, FreezeError
from flowstone.freeze.frozen import freeze
from flowstone.plan.codec import decode_plan
from flowstone.plan.model import Gate, Unit
from flowstone.plan.units import AgentSpec, Credential, EnvRef, LlmSpec, PromptTarget
from flowstone.ports.catalog import EngineConfig
from flowstone.testing.plans import solo, spine

LOCAL = "http://127.0.0.1:1/v1/chat/completions"
REMOTE = "https://api.test/v1/chat/completions"
LLM = {"kind": "llm", "endpoint": LOCAL, "model": "m1"}
ENGINES = {
    "fake": LLM,
    "far": {**LLM, "endpoint": REMOTE, "model": "m2", "temperature": 1, "maxTokens": 9, "extraParams": {"a": 1}},
    "ag": {"kind": "agent", "platform": "claude", "bin": "./claude", "args": ["-x"], "model": "am"},
    "sdk": {"kind": "agent", "platform": "opencode-sdk", "llmEngine": "far"},
}
CONFIG = {"engines": ENGINES, "default_engine": "fake", "key_names": ("KEY_{}", "KEY")}


def frozen(target, defaults=None, unit=None, **config):
    plan = spine(solo("a", unit=Unit(target, **(unit or {}))), defaults=defaults)
    return freeze(plan, EngineConfig(**{**CONFIG, **config}))


def unit_of(target, **fields):
    return frozen(target, **fields).plan.steps[0].unit


def spec_of(target, **fields):
    return unit_of(target, **fields).spec


def test_a_model_engine_is_frozen_whole():
    found = frozen(PromptTarget("Do."))
    assert found.plan.steps[0].unit == Unit(
        LlmSpec("Do.", "fake", LOCAL, "m1", credential=Credential(("KEY_FAKE", "KEY")), concurrency=1),
        timeout_ms=600_000,
    )
    assert decode_plan(found.text) == found.plan
    assert found.notices == found.warnings == ()


def test_the_unit_selects_its_engine_else_the_configuration():
    assert spec_of(PromptTarget("Do.", engine="far")).engine == "far"
    assert spec_of(PromptTarget("Do."), default_engine="far").engine == "far"


def test_the_model_of_the_unit_goes_before_that_of_the_engine():
    assert spec_of(PromptTarget("Do.", model="x/y")).model == "x/y"
    assert spec_of(PromptTarget("Do.", engine="ag", model="x/y")).model == "x/y"
    assert spec_of(PromptTarget("Do.", engine="ag")).model == "am"


def test_tuning_in_layers():
    document, own = {"temperature": 0.7, "max_tokens": 50, "extra_params": {"b": 2}}, {"temperature": 0.2}
    target = PromptTarget("Do.", engine="far", own_llm=own)
    spec = spec_of(target, defaults={"llm": document})
    assert (spec.temperature, spec.max_tokens, spec.extra_params) == (0.2, 50, {"a": 1, "b": 2})


def test_the_tuning_of_an_alias_counts_where_the_alias_was_named():
    models = (("m.json", {"version": 1, "aliases": {"calm": {"fake": {"inference": {"temperature": 0.1}}}}}),)
    document = {"llm": {"temperature": 0.7}}
    inherited = PromptTarget("Do.", model="calm")
    assert spec_of(inherited, defaults=document, models=models).temperature == 0.7
    named = PromptTarget("Do.", model="calm", own_model=True)
    assert spec_of(named, defaults=document, models=models).temperature == 0.1
    tuned = PromptTarget("Do.", model="calm", own_model=True, own_llm={"temperature": 0.3})
    assert spec_of(tuned, defaults=document, models=models).temperature == 0.3
    assert spec_of(named, models=models).model == "m1"


@pytest.mark.parametrize(
    ("engine", "configured", "concurrency"),
    [("fake", None, 1), ("far", None, 4), ("fake", 16, 16), ("far", 1, 1), ("fake", 900, 64)],
)
def test_the_width_of_an_engine(engine, configured, concurrency):
    changed = ENGINES[engine] if configured is None else {**ENGINES[engine], "concurrency": configured}
    assert spec_of(PromptTarget("Do.", engine=engine), engines={engine: changed}).concurrency == concurrency


def test_an_agent_has_no_width_but_that_of_the_model_it_falls_back_to():
    assert spec_of(PromptTarget("Do.", engine="ag")).concurrency is None
    assert spec_of(PromptTarget("Do.", engine="sdk")).concurrency == 4


@pytest.mark.parametrize(
    ("engine", "changed", "unit", "timeout"),
    [
        ("fake", {}, {}, 600_000),
        ("fake", {"timeoutMs": 5}, {}, 5),
        ("fake", {"timeoutMs": None}, {}, None),
        ("fake", {"timeoutMs": 5}, {"timeout_ms": 7, "timeout_set": True}, 7),
        ("fake", {"timeoutMs": 5}, {"timeout_ms": None, "timeout_set": True}, None),
        ("ag", {}, {}, None),
        ("ag", {"timeoutMs": 5}, {}, 5),
        ("sdk", {}, {}, 600_000),
    ],
)
def test_timeouts(engine, changed, unit, timeout):
    engines = {**ENGINES, engine: {**ENGINES[engine], **changed}}
    assert unit_of(PromptTarget("Do.", engine=engine), unit=unit, engines=engines).timeout_ms == timeout


@pytest.mark.parametrize("spelt", ["$MY_KEY", "${MY_KEY}"])
def test_a_declared_key_is_required(spelt):
    engines = {"fake": {**LLM, "apiKey": spelt}}
    assert spec_of(PromptTarget("Do."), engines=engines).credential == Credential(("MY_KEY",), required=True)


def test_the_engines_name_is_in_the_key_that_it_may_have():
    spec = spec_of(PromptTarget("Do.", engine="my-one"), engines={"my-one": LLM})
    assert spec.credential.names == ("KEY_MY_ONE", "KEY")


def test_a_key_may_lie_in_a_file_but_not_in_a_secret_of_another_program():
    engines = {"fake": {**LLM, "apiKeyFile": "/run/key"}}
    assert spec_of(PromptTarget("Do."), engines=engines).credential == Credential(file="/run/key", required=True)
    with pytest.raises(ConfigError, match="apiKeySecretRef"):
        frozen(PromptTarget("Do."), engines={"fake": {**LLM, "apiKeySecretRef": "x"}})


def test_an_agent_is_frozen_whole():
    spec = spec_of(PromptTarget("Do.", engine="ag", env=("env/x",)))
    assert spec == AgentSpec("Do.", "ag", "claude", "./claude", ("-x",), model="am", env=(EnvRef("env/x"),))


def test_what_an_agent_cannot_take_is_told_once_a_field():
    target = PromptTarget("Do.", engine="ag", own_llm={"temperature": 0.5})
    notices = frozen(target, defaults={"llm": {"temperature": 1, "max_tokens": 5}}).notices
    assert [(n.code, n.step, n.adapter, n.field, n.severity) for n in notices] == [
        ("untranslated-field", "a", "claude", "inference.temperature", "warning"),
        ("untranslated-field", "a", "claude", "inference.max_tokens", "warning"),
    ]
    assert "temperature" in notices[0].message


def test_tuning_reaches_the_model_behind_an_sdk_engine():
    found = frozen(PromptTarget("Do.", engine="sdk", own_llm={"temperature": 0.5}))
    spec = found.plan.steps[0].unit.spec
    assert found.notices == ()
    assert (spec.fallback.engine, spec.fallback.temperature, spec.model) == ("far", 0.5, "m2")


def test_an_sdk_engine_that_falls_back_to_an_agent_is_refused():
    engines = {**ENGINES, "sdk": {**ENGINES["sdk"], "llmEngine": "ag"}}
    with pytest.raises(ConfigError, match='"ag", which is no model engine'):
        frozen(PromptTarget("Do.", engine="sdk"), engines=engines)


def test_without_any_engine_an_installed_program_is_used_and_told():
    found = frozen(PromptTarget("Do."), default_engine=None, opencode=True, default_llm_engine="far")
    spec = found.plan.steps[0].unit.spec
    assert (spec.engine, spec.platform, spec.model) == ("opencode-sdk", "opencode-sdk", "m2")
    assert len(found.warnings) == 1
    assert "opencode-sdk" in found.warnings[0]


@pytest.mark.parametrize(
    ("target", "config", "problem"),
    [
        (PromptTarget("Do."), {"default_engine": None}, 'Step "a" needs an engine'),
        (PromptTarget("Do.", engine="nope"), {}, 'Engine "nope" is not configured. Step "a" needs it.'),
        (PromptTarget("Do."), {"engines": {"fake": {"kind": "llm", "endpoint": LOCAL}}}, 'Engine "fake" has no model'),
        (PromptTarget("Do."), {"engines": {"fake": {"kind": "agent"}}}, 'Engine "fake" has no platform'),
    ],
)
def test_what_is_not_configured_is_said_with_the_command_that_mends_it(target, config, problem):
    with pytest.raises(ConfigError) as caught:
        frozen(target, **config, setter="akm config set")
    assert problem in caught.value.message
    assert (caught.value.hint or "").startswith("akm config set ")
    assert caught.value.code == "INVALID_CONFIG_FILE"


def test_a_model_has_no_folder_and_no_environment():
    with pytest.raises(FreezeError, match='Step "a" asks for isolation: worktree'):
        frozen(PromptTarget("Do."), unit={"isolation": "worktree"})
    with pytest.raises(FreezeError, match='Step "a" binds env: env/x'):
        frozen(PromptTarget("Do.", env=("env/x",)))


def judged(**config):
    step = solo("a", gate=Gate("good?", 2, system="judge"))
    return freeze(spine(step), EngineConfig(**{**CONFIG, **config})).plan.steps[0].gate


def test_a_judge_is_frozen_with_its_own_settings():
    gate = judged(judge_engine="far")
    assert (gate.judge.engine, gate.judge.model, gate.judge.temperature, gate.judge.judges) == ("far", "m2", 1.0, True)
    assert (gate.judge.content, gate.judge_timeout_ms, gate.system) == ("", 600_000, "judge")
    agent = judged(judge_engine="ag")
    assert (agent.judge.platform, agent.judge.judges, agent.judge_timeout_ms) == ("claude", True, None)


@pytest.mark.parametrize("name", [None, "nope"])
def test_a_rubric_without_a_judge_is_refused(name):
    with pytest.raises(ConfigError, match='"a"') as caught:
        judged(judge_engine=name)
    assert caught.value.hint


def test_equal_numbers_freeze_to_equal_plans():
    one, other = ({"engines": {"fake": {**LLM, "temperature": number}}} for number in (1, 1.0))
    assert frozen(PromptTarget("Do."), **one).hash == frozen(PromptTarget("Do."), **other).hash
