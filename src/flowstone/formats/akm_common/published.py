"""The parts that the published JSON Schemas of the akm formats share, made of the parsers' own tables."""

from __future__ import annotations

from typing import Any

from flowstone.expr.schema import TYPES
from flowstone.expr.schema_check import UNSUPPORTED
from flowstone.formats.akm_common import rules
from flowstone.plan import bounds

DRAFT = "https://json-schema.org/draft/2020-12/schema"
FILLED = {"type": "string", "pattern": r"\S"}
_IDENT = "[A-Za-z_][A-Za-z0-9_-]*"
PARAM_REFERENCE = rf"^\s*params\.{_IDENT}\s*$"
STEP_REFERENCE = rf"^\s*steps\.{_IDENT}\.output(?:\.{_IDENT}|\[[0-9]+\])*\s*$"


def closed(properties: dict[str, Any], required: tuple[str, ...] = (), **more: Any) -> dict[str, Any]:
    """An object schema that allows the named properties only."""
    found: dict[str, Any] = {"type": "object", "properties": properties, "additionalProperties": False}
    if required:
        found["required"] = list(required)
    return {**found, **more}


def integer(low: int, high: int | None = None, **more: Any) -> dict[str, Any]:
    found: dict[str, Any] = {"type": "integer", "minimum": low}
    if high is not None:
        found["maximum"] = high
    return {**found, **more}


def timeout() -> dict[str, Any]:
    return {
        "description": 'Milliseconds, a number with ms, s or m ("10m"), or none for no limit.',
        "anyOf": [
            integer(1, bounds.TIMEOUT_MS),
            {
                "type": "string",
                "pattern": r"^\s*(?:[0-9]*[1-9][0-9]*(?:[mM][sS]|[sS]|[mM])?|[nN][oO][nN][eE])\s*$",
            },
        ],
    }


def engine() -> dict[str, Any]:
    return {
        "description": "The name of a configured engine.",
        "type": "string",
        "maxLength": bounds.ENGINE_NAME_CHARS,
        "pattern": bounds.ENGINE_NAME,
    }


def llm() -> dict[str, Any]:
    """The bag of inference settings; its keys are those that `rules` checks."""
    kinds: dict[str, Any] = {
        "temperature": {"type": "number"},
        "max_tokens": integer(1),
        "supports_json_schema": {"type": "boolean"},
        "extra_params": {"type": "object"},
        "context_length": integer(1),
        "enable_thinking": {"type": "boolean"},
    }
    return closed({key: kinds[key] for key in rules.LLM_KEYS}, description="Inference settings.")


def json_schema() -> dict[str, Any]:
    """The enforced JSON Schema subset; keywords outside it are refused rather than ignored."""
    inner = {"$ref": "#/$defs/schema"}
    branches = {"type": "array", "minItems": 1, "items": inner}
    properties: dict[str, Any] = {
        "type": {"anyOf": [{"enum": list(TYPES)}, {"type": "array", "minItems": 1, "items": {"enum": list(TYPES)}}]},
        "enum": {"type": "array", "minItems": 1},
        "properties": {"type": "object", "additionalProperties": inner},
        "required": {"type": "array", "items": {"type": "string"}},
        "items": inner,
        "additionalProperties": {"type": "boolean"},
        "not": inner,
    }
    properties |= dict.fromkeys(("minItems", "maxItems", "minLength", "maxLength"), integer(0))
    properties |= {key: {"type": "number"} for key in ("minimum", "maximum")}
    properties |= dict.fromkeys(("allOf", "anyOf", "oneOf"), branches)
    properties |= dict.fromkeys(sorted(UNSUPPORTED - properties.keys()), False)
    return {
        "description": "A schema of the enforced JSON Schema subset.",
        "type": "object",
        "properties": properties,
    }
