"""Specs: what a unit dispatches and under which environment, without any value that may be secret."""

from __future__ import annotations

from typing import Any, assert_never

from flowstone.expr.model import Template, Text
from flowstone.plan.model import FanOut, Route, Step
from flowstone.plan.units import (
    AgentSpec,
    AnySpec,
    AssetTarget,
    ChildSpec,
    EnvBinding,
    EnvRef,
    ExecSpec,
    LiteralEnv,
    LlmSpec,
    PassEnv,
    PromptTarget,
)


def step_kind(step: Step) -> str:
    """unit, map or route."""
    if isinstance(step.action, Route):
        return "route"
    return "map" if isinstance(step.action, FanOut) else "unit"


def target_kind(spec: AnySpec) -> str:
    """The kind of a unit's frozen target (akm facts 9.4)."""
    match spec:
        case ExecSpec():
            return "shell" if spec.script is None else "script"
        case PromptTarget() | LlmSpec() | AgentSpec():
            return "command"
        case ChildSpec():
            return "child-workflow"
        case AssetTarget():
            return spec.ref.partition("//")[2].partition("/")[0] or spec.ref.partition("/")[0]
    return str(type(spec).__struct_config__.tag)


def bindings_of(spec: AnySpec) -> tuple[EnvBinding, ...]:
    if isinstance(spec, (ExecSpec, AgentSpec, AssetTarget)):
        return spec.env
    return tuple(EnvRef(ref) for ref in spec.env) if isinstance(spec, PromptTarget) else ()


def binding_view(binding: EnvBinding) -> dict[str, Any]:
    """A binding by its names; literal values are never shown."""
    match binding:
        case LiteralEnv():
            return {"kind": "literal", "name": binding.name}
        case PassEnv():
            return {"kind": "pass-through", "name": binding.name}
        case EnvRef():
            return {
                "kind": "env-ref",
                "ref": binding.ref,
                **({"owner": {"bundle": binding.owner}} if binding.owner else {}),
                "keys": list(binding.keys),
                "secretNames": list(binding.secret_names),
            }
        case _:
            assert_never(binding)


def spelt(text: Text) -> str:
    """A text as its author wrote it."""
    if isinstance(text, Template):
        return "".join(part if isinstance(part, str) else f"{{{{ {part.source} }}}}" for part in text.parts)
    return text


def engine_of(spec: AnySpec | None) -> str | None:
    """The engine that a frozen spec is asked of; None for what needs none."""
    return spec.engine if isinstance(spec, (LlmSpec, AgentSpec)) else None


def runtime_kind(spec: AnySpec | None) -> str | None:
    """llm, agent, sdk or exec (akm facts 21.3), else the kind of the spec."""
    if isinstance(spec, AgentSpec) and spec.platform.endswith("-sdk"):
        return "sdk"
    return None if spec is None else str(type(spec).__struct_config__.tag)
