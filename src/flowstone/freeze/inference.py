"""Tuning of a model in layers, the nearest last, as one mapping in the spelling of an `llm:` bag."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

KEYS = (
    "temperature",
    "max_tokens",
    "supports_json_schema",
    "extra_params",
    "context_length",
    "enable_thinking",
    "reasoning_effort",
)
_SPELLINGS = {
    "maxTokens": "max_tokens",
    "supportsJsonSchema": "supports_json_schema",
    "extraParams": "extra_params",
    "contextLength": "context_length",
    "enableThinking": "enable_thinking",
    "reasoningEffort": "reasoning_effort",
    "effort": "reasoning_effort",
}


def of_engine(engine: Mapping[str, Any]) -> dict[str, Any]:
    """The tuning in an engine's configuration."""
    return {_SPELLINGS.get(key, key): value for key, value in engine.items() if _SPELLINGS.get(key, key) in KEYS}


def merged(layers: Iterable[Mapping[str, Any] | None]) -> dict[str, Any]:
    """Later layers go before earlier ones; objects merge at every level, all else is replaced."""
    result: dict[str, Any] = {}
    for layer in layers:
        result = _over(result, layer or {})
    return result


def read_inference(value: Any) -> dict[str, Any] | str:
    """The `inference` of a model profile, or what is wrong with it."""
    if not isinstance(value, dict):
        return "must be an object"
    found: dict[str, Any] = {}
    for written, setting in value.items():
        key = _SPELLINGS.get(written, written)
        if key not in KEYS:
            return f'has the unknown key "{written}"; it takes {", ".join(KEYS[:-1])} and effort'
        if key in found:
            return f'says "{key}" twice'
        if not _fits(key, setting):
            return f'"{written}" must be {_WANTED[key]}'
        found[key] = setting
    return found


_WANTED = {
    "temperature": "a number",
    "max_tokens": "a positive whole number",
    "supports_json_schema": "true or false",
    "extra_params": "an object",
    "context_length": "a positive whole number",
    "enable_thinking": "true or false",
    "reasoning_effort": "a text",
}


def _fits(key: str, value: Any) -> bool:
    match key:
        case "temperature":
            return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)
        case "max_tokens" | "context_length":
            return isinstance(value, int) and not isinstance(value, bool) and value > 0
        case "extra_params":
            return isinstance(value, dict)
        case "reasoning_effort":
            return isinstance(value, str) and bool(value.strip())
    return isinstance(value, bool)


def _over(base: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    result = dict(base)
    for key, value in over.items():
        inner = result.get(key)
        result[key] = _over(inner, value) if isinstance(inner, dict) and isinstance(value, dict) else value
    return result
