"""The published JSON Schemas of jobs and blueprints, made of the parser's tables."""

from __future__ import annotations

from typing import Any

from flowstone.formats.orun.grammar import API_VERSION, METADATA_KEYS, NAME, OUTPUT_NAME
from flowstone.formats.orun.schema import DRAFT, FLAG, OPTIONAL, TEXT, TEXTS, closed, named, retry
from flowstone.formats.orun_job import grammar


def job_schema() -> dict[str, Any]:
    properties: dict[str, Any] = {
        "apiVersion": {"const": API_VERSION},
        "kind": {"const": grammar.KIND},
        "metadata": closed({"name": {"type": "string", "pattern": NAME}}, METADATA_KEYS),
        "steps": {"type": "array", "minItems": 1, "maxItems": grammar.STEPS, "items": {"$ref": "#/$defs/step"}},
    }
    return {
        "$schema": DRAFT,
        "title": "orun job (orun.dev/v1)",
        "description": "Steps of shell text and workflows, one after the other, planned and pinned before they run.",
        **closed({key: properties[key] for key in grammar.ROOT_KEYS}, grammar.ROOT_KEYS),
        "$defs": {"step": _step()},
    }


def blueprint_schema() -> dict[str, Any]:
    step = _step_properties()
    hook = {
        **{key: step[key] for key in grammar.HOOK_KEYS if key in step},
        "id": step["name"],
        "phase": {"type": "string", "pattern": grammar.PHASE, "description": "When the hook runs."},
    }
    properties: dict[str, Any] = {
        "apiVersion": {"const": API_VERSION},
        "kind": {"const": grammar.BLUEPRINT_KIND},
        "metadata": closed({"name": {"type": "string", "pattern": NAME}}, METADATA_KEYS),
        "hooks": {"type": "array", "minItems": 1, "items": {"$ref": "#/$defs/hook"}},
    }
    return {
        "$schema": DRAFT,
        "title": "orun blueprint (orun.dev/v1)",
        "description": "Hooks: workflows that are pinned in .orun/provenance.lock and run phase by phase.",
        **closed({key: properties[key] for key in grammar.BLUEPRINT_KEYS}, grammar.BLUEPRINT_KEYS),
        "$defs": {"hook": closed({key: hook[key] for key in grammar.HOOK_KEYS}, ("id", "phase", "workflow"))},
    }


def _step() -> dict[str, Any]:
    properties = _step_properties()
    shape = closed({key: properties[key] for key in grammar.STEP_KEYS}, ("name",))
    return {**shape, "anyOf": [{"required": [verb]} for verb in (*grammar.VERBS, "approval")]}


def _step_properties() -> dict[str, Any]:
    grants = {"type": "object", "additionalProperties": {"type": "string", "pattern": "^secret://"}, "minProperties": 1}
    return {
        "name": {"type": "string", "pattern": NAME},
        "run": {**OPTIONAL, "description": "Shell text, run by sh -ec in the folder in which the run was started."},
        "workflow": {**OPTIONAL, "description": "Path of a workflow file, from the folder of the job."},
        "with": {"type": ["object", "null"], "description": "The inputs of the workflow."},
        "connections": {
            "type": ["object", "null"],
            "additionalProperties": grants,
            "description": "What the workflow's connections are granted: fields that name secrets.",
        },
        "resume": {**FLAG, "description": "A repeated workflow goes on where it failed."},
        "env": {"type": ["object", "null"], "additionalProperties": TEXT},
        "envInherit": TEXTS,
        "cwd": OPTIONAL,
        "outputs": named(OUTPUT_NAME, OPTIONAL, "Name to CEL over the command's result."),
        "timeout": {**OPTIONAL, "description": "A Go duration for one attempt."},
        "retry": {**retry(), "type": ["object", "null"]},
        "onFailure": {"enum": [*grammar.ON_FAILURE, None]},
        "approval": _approval(),
    }


def _approval() -> dict[str, Any]:
    properties: dict[str, Any] = {
        "prompt": {**TEXT, "description": "What is to be decided."},
        "timeout": {**OPTIONAL, "description": "A Go duration; without it the wait has no end."},
        "onTimeout": {"enum": [*grammar.ON_TIMEOUT, None]},
    }
    shape = closed({key: properties[key] for key in grammar.APPROVAL_KEYS}, ("prompt",))
    return {**shape, "type": ["object", "null"]}
