"""Specs: what a unit dispatches and under which environment, without any value that may be secret."""

from __future__ import annotations

from typing import Any, assert_never

from flowstone.expr.model import Template, Text
from flowstone.plan.model import FanOut, Route, Step
from flowstone.plan.units import (
    AnySpec,
    AssetTarget,
    ChildSpec,
    EnvBinding,
    EnvRef,
    ExecSpec,
    LiteralEnv,
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
            return "shell"
        case PromptTarget():
            return "command"
        case ChildSpec():
            return "child-workflow"
        case AssetTarget():
            return spec.ref.partition("//")[2].partition("/")[0] or spec.ref.partition("/")[0]
    return str(type(spec).__struct_config__.tag)


def bindings_of(spec: AnySpec) -> tuple[EnvBinding, ...]:
    if isinstance(spec, (ExecSpec, AssetTarget)):
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
