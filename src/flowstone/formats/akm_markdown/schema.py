"""The published JSON Schema of a Markdown workflow's front matter, made of the parser's tables."""

from __future__ import annotations

from typing import Any

from flowstone.formats.akm_common.published import (
    DRAFT,
    FILLED,
    PARAM_REFERENCE,
    STEP_REFERENCE,
    closed,
    engine,
    integer,
    json_schema,
    llm,
    timeout,
)
from flowstone.formats.akm_markdown import grammar
from flowstone.plan import bounds
from flowstone.run.outcome import RETRYABLE

_NAMES = {"propertyNames": {"pattern": bounds.PARAM_NAME}}
_SCHEMA = {"$ref": "#/$defs/schema"}
_TEXT = {"type": "string"}


def markdown_schema() -> dict[str, Any]:
    properties = _envelope() | _workflow()
    return {
        "$schema": DRAFT,
        "title": "akm workflow (Markdown front matter)",
        "description": "The front matter of a workflow in Markdown; its body holds the steps' instructions.",
        **closed({key: properties[key] for key in grammar.ROOT_KEYS}, ("steps",)),
        "$defs": {"schema": json_schema(), "step": _step(), "unit": _unit()},
    }


def _envelope() -> dict[str, Any]:
    stamp = closed({"by": FILLED, "at": _TEXT}, ("by",))
    texts: dict[str, Any] = dict.fromkeys(grammar.ENVELOPE_TEXTS, _TEXT)
    return texts | {
        "type": {"const": "workflow"},
        "description": {**_TEXT, "description": "What the workflow is for, in one line."},
        "tags": {"type": "array", "items": FILLED},
        "xrefs": {"type": "array", "items": {**_TEXT, "pattern": "^[^:]+/[^:]+$"}},
        "generated": stamp,
        "verified": {"anyOf": [stamp, {"type": "array", "items": stamp}]},
        "provenance": {"type": "object"},
        "status": {"enum": list(grammar.STATUSES)},
    }


def _workflow() -> dict[str, Any]:
    unit = _unit_options()
    export = {"from": {**_TEXT, "pattern": STEP_REFERENCE}, "schema": _SCHEMA}
    return {
        "params": {
            "description": "The params of a run: a JSON Schema for each name.",
            "type": "object",
            "maxProperties": bounds.PARAMS,
            "additionalProperties": _SCHEMA,
            **_NAMES,
        },
        "defaults": closed({key: unit[key] for key in grammar.DEFAULTS_KEYS}, description="What every unit inherits."),
        "budget": closed(
            {"max_units": integer(1, bounds.UNITS), "max_tokens": integer(1)},
            description="Ceilings over the whole life of a run.",
        ),
        "outputs": {
            "description": "What a completed run exports.",
            "type": "object",
            "maxProperties": bounds.OUTPUTS,
            "additionalProperties": closed(export, ("from",)),
            **_NAMES,
        },
        "steps": {
            "description": "The steps in order.",
            "type": "array",
            "minItems": 1,
            "maxItems": bounds.STEPS,
            "items": {"$ref": "#/$defs/step"},
        },
    }


def _step() -> dict[str, Any]:
    reference = {**_TEXT, "pattern": STEP_REFERENCE}
    properties = {
        "id": {**_TEXT, "pattern": bounds.STEP_ID, "description": "The body's heading is ## and this id."},
        "unit": {"$ref": "#/$defs/unit"},
        "map": _map(),
        "route": _route(),
        "inputs": {
            "description": "Artifacts of earlier steps that are attached to this one.",
            "type": "array",
            "minItems": 1,
            "maxItems": bounds.INPUTS,
            "items": reference,
        },
        "output": _SCHEMA,
        "gate": closed({"max_loops": integer(1, bounds.MAX_LOOPS)}),
    }
    pairs = (("map", "route"), ("map", "unit"), ("route", "unit"), ("route", "inputs"))
    exclusive = [{"not": {"required": list(pair)}} for pair in pairs]
    return closed({key: properties[key] for key in grammar.STEP_KEYS}, ("id",), allOf=exclusive)


def _map() -> dict[str, Any]:
    properties = {
        "over": _value_reference("The list that is fanned out."),
        "concurrency": integer(1, bounds.CONCURRENCY),
        "reducer": {"enum": list(grammar.REDUCERS)},
        "unit": {"$ref": "#/$defs/unit"},
    }
    return closed({key: properties[key] for key in grammar.MAP_KEYS}, ("over",))


def _route() -> dict[str, Any]:
    branch = closed({"match": {"type": ["string", "number", "boolean"]}, "step": FILLED}, grammar.BRANCH_KEYS)
    properties = {
        "input": _value_reference("The value that selects a branch."),
        "when": {"type": "array", "minItems": 1, "maxItems": bounds.ROUTE_BRANCHES, "items": branch},
        "default": FILLED,
    }
    return closed({key: properties[key] for key in grammar.ROUTE_KEYS}, ("input", "when"))


def _value_reference(description: str) -> dict[str, Any]:
    patterns = [{"pattern": PARAM_REFERENCE}, {"pattern": STEP_REFERENCE}]
    return {**_TEXT, "description": description, "anyOf": patterns}


def _unit() -> dict[str, Any]:
    options = _unit_options()
    no_engine = {"properties": dict.fromkeys(grammar.ENGINE_ONLY_KEYS, False)}
    return closed({key: options[key] for key in grammar.UNIT_KEYS}, dependentSchemas={"exec": no_engine})


def _unit_options() -> dict[str, Any]:
    reasons = {"type": "array", "minItems": 1, "items": {"enum": [str(reason) for reason in RETRYABLE]}}
    return {
        "exec": _exec(),
        "engine": engine(),
        "model": {**FILLED, "description": "A model alias, or a model's exact id."},
        "llm": llm(),
        "timeout": timeout(),
        "retry": closed({"max": integer(0, bounds.RETRIES), "on": reasons}, grammar.RETRY_KEYS),
        "on_error": {"enum": list(grammar.ON_ERROR)},
        "output": _SCHEMA,
        "env": {"type": "array", "items": FILLED},
        "isolation": {"enum": list(grammar.ISOLATIONS)},
    }


def _exec() -> dict[str, Any]:
    argument = {**_TEXT, "minLength": 1, "maxLength": bounds.ARGV_ENTRY_BYTES}
    names = {"type": "array", "minItems": 1, "maxItems": bounds.PASS_ENV, "uniqueItems": True}
    properties = {
        "command": {
            "description": "Program and arguments; nothing parses the words.",
            "type": "array",
            "minItems": 1,
            "maxItems": bounds.ARGV_ENTRIES,
            "items": argument,
        },
        "cwd": {**FILLED, "maxLength": bounds.CWD_CHARS, "description": "A folder below the run's."},
        "pass_env": {**names, "items": {**_TEXT, "pattern": bounds.ENV_NAME}},
    }
    return closed({key: properties[key] for key in grammar.EXEC_KEYS}, ("command",))
