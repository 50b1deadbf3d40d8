"""The published JSON Schema of orun.dev/v1 workflows, made of the parser's tables."""

from __future__ import annotations

from typing import Any

from flowstone.formats.orun import grammar

DRAFT = "https://json-schema.org/draft/2020-12/schema"
TEXT = {"type": ["string", "number", "boolean"]}
"""Any scalar: it is read as it is spelt."""
OPTIONAL = {"type": ["string", "number", "boolean", "null"]}
FLAG = {"type": ["boolean", "null"]}
TEXTS = {"type": ["array", "null"], "items": TEXT}
_ANYTHING: dict[str, Any] = {}


def orun_schema() -> dict[str, Any]:
    properties: dict[str, Any] = {
        "apiVersion": {"const": grammar.API_VERSION},
        "kind": {"const": grammar.KIND},
        "metadata": closed({"name": {"type": "string", "pattern": grammar.NAME}}, grammar.METADATA_KEYS),
        "inputs": named(grammar.INPUT_NAME, _input(), "Declared inputs."),
        "connections": named(grammar.CONNECTION_NAME, _connection(), "Names only; values are granted."),
        "outputs": named(grammar.OUTPUT_NAME, OPTIONAL, "Name to CEL over the final state."),
        "maxParallel": {"type": ["integer", "null"], "minimum": 1},
        "steps": {"type": "array", "minItems": 1, "items": {"$ref": "#/$defs/step"}},
    }
    return {
        "$schema": DRAFT,
        "title": "orun workflow (orun.dev/v1)",
        "description": "A workflow of commands, built-in actions and nested workflows.",
        **closed({key: properties[key] for key in grammar.ROOT_KEYS}, ("apiVersion", "kind", "metadata", "steps")),
        "$defs": {"step": _step()},
    }


def closed(properties: dict[str, Any], required: tuple[str, ...] = ()) -> dict[str, Any]:
    found: dict[str, Any] = {"type": "object", "properties": properties, "additionalProperties": False}
    return {**found, "required": list(required)} if required else found


def named(pattern: str, value: dict[str, Any], description: str) -> dict[str, Any]:
    return {
        "description": description,
        "type": ["object", "null"],
        "propertyNames": {"pattern": pattern},
        "additionalProperties": value,
    }


def _input() -> dict[str, Any]:
    properties = {
        "type": {"enum": [*grammar.INPUT_TYPES, None]},
        "required": FLAG,
        "default": _ANYTHING,
        "values": {"type": ["array", "null"]},
        "pattern": {**OPTIONAL, "description": "An RE2 pattern."},
        "secret": FLAG,
        "description": OPTIONAL,
    }
    shape = closed({key: properties[key] for key in grammar.INPUT_KEYS})
    return {**shape, "type": ["object", "null"]}


def _connection() -> dict[str, Any]:
    return closed({"type": {"enum": list(grammar.CONNECTION_TYPES)}}, grammar.CONNECTION_KEYS)


def _step() -> dict[str, Any]:
    properties: dict[str, Any] = {
        "name": {"type": "string", "pattern": grammar.NAME},
        "needs": TEXTS,
        "if": {**OPTIONAL, "description": "CEL; false skips the step."},
        "run": {**TEXTS, "description": "An argv, executed directly."},
        "action": {"enum": [*grammar.ACTIONS, None]},
        "workflow": {**OPTIONAL, "description": "Path of a nested workflow."},
        "with": {"type": ["object", "null"]},
        "env": {"type": ["object", "null"], "additionalProperties": TEXT},
        "envInherit": TEXTS,
        "cwd": OPTIONAL,
        "connection": OPTIONAL,
        "timeout": {**OPTIONAL, "description": "A Go duration for one attempt."},
        "retry": {**retry(), "type": ["object", "null"]},
        "continueOnError": FLAG,
        "poll": {**_poll(), "type": ["object", "null"]},
        "outputs": named(grammar.OUTPUT_NAME, OPTIONAL, "Name to CEL over the step's result."),
    }
    shape = closed({key: properties[key] for key in grammar.STEP_KEYS}, ("name",))
    return {**shape, "anyOf": [{"required": [verb]} for verb in grammar.VERBS]}


def retry() -> dict[str, Any]:
    properties = {
        "maxRetries": {"type": ["integer", "null"], "minimum": 0},
        "baseDelay": OPTIONAL,
        "kind": {"enum": [*grammar.RETRY_KINDS, None]},
    }
    return closed({key: properties[key] for key in grammar.RETRY_KEYS})


def _poll() -> dict[str, Any]:
    return closed(dict.fromkeys(grammar.POLL_KEYS, TEXT), grammar.POLL_KEYS)
