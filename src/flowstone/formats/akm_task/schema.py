"""The published JSON Schema of a task file of version 4, made of the parser's tables."""

from __future__ import annotations

from typing import Any

from flowstone.formats.akm_common.published import DRAFT, FILLED, closed, engine, integer, json_schema
from flowstone.formats.akm_common.targets import USES_PATTERN
from flowstone.formats.akm_task import grammar
from flowstone.plan import bounds

_TEXT = {"type": "string"}
_FILLED_LIST = {"type": "array", "maxItems": grammar.ITEMS, "items": FILLED}
_NO_TASKS = USES_PATTERN.replace("|tasks|", "|")
_CRON = {
    "description": "Five fields, or @hourly, @daily, @weekly, @monthly.",
    "type": "string",
    "pattern": rf"^\s*(?:[^@\s]\S*(?:\s+\S+){{4}}|{'|'.join(grammar.ALIASES)})\s*$",
}


def task_schema() -> dict[str, Any]:
    properties = {**_about(), **_target(), **_limits(), "inputs": _inputs(), "schedule": _schedule()}
    targets = [
        {"required": ["uses"], "properties": dict.fromkeys(("run", *grammar.RUN_ONLY), False)},
        {"required": ["run"], "properties": {"uses": False, "with": False, "output": False}},
    ]
    return {
        "$schema": DRAFT,
        "title": "akm task",
        "description": "One thing to run, the inputs that it takes, and when.",
        **closed({key: properties[key] for key in grammar.KEYS}, ("version",), oneOf=targets),
        "$defs": {"schema": json_schema(), "input": _input()},
    }


def _about() -> dict[str, Any]:
    return {"version": {"const": grammar.VERSION}, **dict.fromkeys(grammar.TEXT_KEYS, FILLED), "tags": _FILLED_LIST}


def _target() -> dict[str, Any]:
    return {
        "uses": {**_TEXT, "pattern": f"^(?:{_NO_TASKS})$", "description": "A stored asset, or akm/command."},
        "run": {**FILLED, "description": "A shell text."},
        "with": closed(dict.fromkeys(grammar.COMMAND_KEYS, _TEXT)),
        "env": {
            "type": "object",
            "propertyNames": {"pattern": bounds.ENV_NAME},
            "additionalProperties": {"type": ["string", "number", "boolean"]},
        },
        "shell": {"enum": list(grammar.SHELLS)},
        "working-directory": {**_TEXT, "minLength": 1, "maxLength": bounds.CWD_CHARS},
        "output": {"$ref": "#/$defs/schema"},
        "agent": FILLED,
        "engine": engine(),
        "model": FILLED,
        "inference": {"type": "object"},
        "tools": {"anyOf": [FILLED, _FILLED_LIST]},
    }


def _limits() -> dict[str, Any]:
    return {
        "timeout": {
            "description": "Milliseconds, a text such as 30s, 10m or 2h; null or 0 for no limit.",
            "anyOf": [{"type": "null"}, integer(0, bounds.TIMEOUT_MS), {"type": "string", "pattern": r"\S"}],
        },
        "redact": {
            "type": "array",
            "maxItems": grammar.REDACTED,
            "uniqueItems": True,
            "items": {**_TEXT, "pattern": bounds.ENV_NAME},
        },
        "maxSteps": integer(1),
        "maxRetries": integer(0, grammar.RETRIES),
    }


def _inputs() -> dict[str, Any]:
    names = {"pattern": bounds.PARAM_NAME, "not": {"enum": sorted(grammar.RESERVED_INPUTS)}}
    inner = {"$ref": "#/$defs/input"}
    return {"type": "object", "maxProperties": grammar.INPUTS, "propertyNames": names, "additionalProperties": inner}


def _input() -> dict[str, Any]:
    enforced = json_schema()["properties"]
    own = {"title": True, "description": True, "default": True, "required": {"type": "boolean"}}
    properties = {**{key: enforced[key] for key in grammar.INPUT_KEYS if key in enforced}, **own}
    required_with_default = {"properties": {"required": {"const": True}}, "required": ["required", "default"]}
    return {**closed({key: properties[key] for key in grammar.INPUT_KEYS}), "not": required_with_default}


def _schedule() -> dict[str, Any]:
    entry = closed({"cron": _CRON, "inputs": {"type": "object"}}, ("cron",))
    entries = {"type": "array", "minItems": 1, "maxItems": bounds.SCHEDULES, "items": entry}
    return {"description": "When it runs where it is enabled.", "anyOf": [_CRON, entries]}
