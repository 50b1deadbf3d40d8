"""A spec and its messages → the body of a chat-completions request (akm facts 10.4)."""

from __future__ import annotations

import json
from typing import Any

from flowstone.plan.units import LlmSpec
from flowstone.ports.dispatcher import Dispatch

DEFAULT_TEMPERATURE = 0.3


def wants_format(dispatch: Dispatch, spec: LlmSpec) -> bool:
    """Whether the schema is sent along for the server to hold the model to it."""
    return dispatch.has_schema and not spec.judges and spec.supports_json_schema is not False


def body_of(spec: LlmSpec, messages: tuple[tuple[str, str], ...], schema: Any, *, formatted: bool) -> bytes:
    """The body as JSON; `formatted` has `response_format` in it. Extra params are laid over it last."""
    body: dict[str, Any] = {
        "model": spec.model,
        "messages": [{"role": role, "content": text} for role, text in messages],
        "temperature": DEFAULT_TEMPERATURE if spec.temperature is None else _plain(spec.temperature),
    }
    if spec.max_tokens is not None:
        body["max_tokens"] = spec.max_tokens
    if formatted:
        named = {"name": spec.schema_name, "schema": schema, "strict": True}
        body["response_format"] = {"type": "json_schema", "json_schema": named}
    if spec.enable_thinking is not None:
        body["enable_thinking"] = spec.enable_thinking
        body["chat_template_kwargs"] = {"enable_thinking": spec.enable_thinking}
    if spec.reasoning_effort is not None:
        body["reasoning_effort"] = spec.reasoning_effort
    body.update(spec.extra_params or {})
    return json.dumps(body, ensure_ascii=False, allow_nan=False).encode("utf-8")


def _plain(number: float) -> float:
    return int(number) if number.is_integer() else number
