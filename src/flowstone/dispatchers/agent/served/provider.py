"""The model engine behind a served agent → the configuration of the server, as one of its providers.

The server takes any chat-completions endpoint; a key travels in a variable of the server's own.
"""

from __future__ import annotations

from typing import Any

from flowstone.plan.units import AgentSpec, LlmSpec
from flowstone.values import canonical_json

PROVIDER = "flowstone"
KEY_VARIABLE = "FLOWSTONE_ENGINE_KEY"
_ENDPOINT_TAIL = "/chat/completions"


class NoModel(ValueError):
    """The model is none that the server could ask; the message says how to name one."""


def model_of(spec: AgentSpec) -> tuple[str, str] | None:
    """(provider, model) to ask, or None to leave the choice to the server.

    A model of the engine behind it goes by that engine's provider; any other one names its provider itself.
    """
    if spec.model is None:
        return None
    provider, slash, model = spec.model.partition("/")
    if spec.fallback is not None and (spec.model == spec.fallback.model or not slash):
        return PROVIDER, spec.model
    if not (provider and model):
        text = f'the model "{spec.model}" names no provider: write provider/model, or give the engine an llmEngine'
        raise NoModel(text)
    return provider, model


def configuration(spec: AgentSpec, key: str | None) -> str:
    """The server's configuration as JSON, laid over that of its own files."""
    found: dict[str, Any] = {"autoupdate": False, "share": "disabled"}
    if spec.fallback is not None:
        asked = model_of(spec)
        model = asked[1] if asked is not None and asked[0] == PROVIDER else spec.fallback.model
        found["provider"] = {PROVIDER: _provider(spec.fallback, model, key)}
        found["small_model"] = f"{PROVIDER}/{model}"
    return canonical_json(found)


def _provider(engine: LlmSpec, model: str, key: str | None) -> dict[str, Any]:
    options = {"baseURL": engine.endpoint.removesuffix(_ENDPOINT_TAIL)}
    if key is not None:
        options["apiKey"] = f"{{env:{KEY_VARIABLE}}}"
    return {
        "npm": "@ai-sdk/openai-compatible",
        "name": engine.engine,
        "options": options,
        "models": {model: {"options": _tuning(engine), **_limits(engine)}},
    }


def _tuning(engine: LlmSpec) -> dict[str, Any]:
    """What is laid into each request to the model, as a request of ours would have it."""
    body: dict[str, Any] = {
        "temperature": engine.temperature,
        "max_tokens": engine.max_tokens,
        "reasoningEffort": engine.reasoning_effort,
    }
    if engine.enable_thinking is not None:
        body["enable_thinking"] = engine.enable_thinking
        body["chat_template_kwargs"] = {"enable_thinking": engine.enable_thinking}
    return {name: value for name, value in body.items() if value is not None} | (engine.extra_params or {})


def _limits(engine: LlmSpec) -> dict[str, Any]:
    if engine.context_length is None:
        return {}
    output = engine.max_tokens or engine.context_length // 4
    return {"limit": {"context": engine.context_length, "output": output}}
