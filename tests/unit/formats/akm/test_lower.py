"""What a document becomes in the plan: order, routes, defaults, commands and prompts."""

from __future__ import annotations

from flowstone.formats.akm_common.lower import ALLOWLIST
from flowstone.plan.model import Backoff, FanOut, Once, OnError, OnFailure, Reducer, Retry, Route, Trigger
from flowstone.plan.units import EnvRef, ExecSpec, PassEnv, PromptTarget
from tests.unit.formats.akm.compiling import markdown, plan_of

RICH = """
params:
  xs: { type: array, description: All of it, default: [1] }
  y: {}
defaults: { engine: e, model: m, timeout: 5m, on_error: continue, llm: { temperature: 1, extra_params: { a: { b: 1 } } } }
budget: { max_units: 7, max_tokens: 9 }
outputs: { z: { from: steps.a.output }, b: { from: 'steps.m.output[0]', schema: { type: string } } }
steps:
  - id: a
    output: { type: object }
    unit: { llm: { max_tokens: 2.0, extra_params: { a: { c: 2 } } }, timeout: none, env: [env/x] }
  - id: m
    map: { over: params.xs, reducer: vote, unit: { model: deep, retry: { max: 2, on: [timeout] }, on_error: fail } }
    output: { type: string }
  - id: x
    inputs: [steps.m.output]
    unit:
      exec: { command: [make, 'a; b'], cwd: './sub/.', pass_env: [CARGO_HOME] }
      env: [env/y]
    gate: { max_loops: 5 }
  - id: r
    route: { input: params.y, when: [{ match: 1, step: t }, { match: two, step: u }], default: u }
  - id: t
  - id: u
"""
BODY = "".join(f"## {name}\n\nDo {name}.\n\n" for name in "amtu") + "## x\n\nDo x.\n\n### gate\n\nFine.\n"


def test_the_spine_becomes_needs() -> None:
    plan = plan_of(markdown(RICH, BODY))
    assert [step.needs for step in plan.steps] == [(), ("a",), ("m",), ("x",), ("r",), ("t",)]
    assert [step.selected_by for step in plan.steps] == [(), (), (), (), ("r",), ("r",)]
    assert plan.triggers == (Trigger(None),)


def test_policies() -> None:
    policies = plan_of(markdown(RICH, BODY)).policies
    assert policies.on_failure is OnFailure.HALT
    assert policies.hashing.prefix == "akm.workflow.unit\0v7\0"
    assert policies.empty_text_absent


def test_a_prompt_takes_the_documents_defaults() -> None:
    step = plan_of(markdown(RICH, BODY)).steps[0]
    llm = {"temperature": 1, "max_tokens": 2, "extra_params": {"a": {"b": 1, "c": 2}}}
    spec = step.unit.spec
    assert isinstance(spec, PromptTarget)
    assert (spec.content, spec.engine, spec.model, spec.llm, spec.env) == ("Do a.", "e", "m", llm, ("env/x",))
    assert not spec.own_model
    assert (step.unit.timeout_set, step.unit.timeout_ms) == (True, None)
    assert step.on_error is OnError.CONTINUE
    assert step.repeat == Once()


def test_a_solo_steps_schema_is_taught_to_its_unit() -> None:
    solo, fan_out = plan_of(markdown(RICH, BODY)).steps[:2]
    assert solo.unit.schema == solo.schema == {"type": "object"}
    assert not fan_out.unit.has_schema
    assert fan_out.has_schema


def test_a_map() -> None:
    step = plan_of(markdown(RICH, BODY)).steps[1]
    assert isinstance(step.action, FanOut)
    assert (step.action.over.text, step.action.width, step.action.reducer) == ("params.xs", None, Reducer.VOTE)
    assert step.repeat == Retry(2, ("timeout",), backoff=Backoff(("llm_rate_limit",)))
    assert step.on_error is OnError.FAIL
    assert step.unit.spec.model == "deep"
    assert (step.unit.timeout_set, step.unit.timeout_ms) == (True, 300_000)


def test_a_command() -> None:
    step = plan_of(markdown(RICH, BODY)).steps[2]
    spec = step.unit.spec
    assert isinstance(spec, ExecSpec)
    assert spec.argv == ("make", "a; b")
    assert spec.cwd == "sub"
    assert spec.env == (PassEnv("CARGO_HOME"), EnvRef("env/y"))
    assert spec.environment.base == ALLOWLIST
    assert spec.environment.context == "AKM_"
    assert step.gate.max_loops == 1
    assert [reference.text for reference in step.inputs] == ["steps.m.output"]


def test_a_unit_without_any_timeout_leaves_it_to_freezing() -> None:
    unit = plan_of(markdown("steps:\n  - id: a")).steps[0].unit
    assert (unit.timeout_set, unit.timeout_ms) == (False, None)


def test_a_route_compares_text() -> None:
    action = plan_of(markdown(RICH, BODY)).steps[3].action
    assert isinstance(action, Route)
    assert [(branch.match, branch.step) for branch in action.branches] == [("1", "t"), ("two", "u")]
    assert action.default == "u"


def test_settings() -> None:
    plan = plan_of(markdown(RICH, BODY))
    xs, y = plan.params
    assert (xs.description, xs.type, xs.has_default, xs.default) == ("All of it", "array", True, [1])
    assert not y.has_default
    assert (plan.budget.max_units, plan.budget.max_tokens) == (7, 9)
    assert [output.name for output in plan.outputs] == ["b", "z"]
    assert plan.outputs[0].schema == {"type": "string"}
    assert plan.source.path == "w.md"
