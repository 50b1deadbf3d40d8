"""The published JSON Schema of jobs, made of the parser's tables."""

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


def _step() -> dict[str, Any]:
    grants = {"type": "object", "additionalProperties": {"type": "string", "pattern": "^secret://"}, "minProperties": 1}
    properties: dict[str, Any] = {
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
    shape = closed({key: properties[key] for key in grammar.STEP_KEYS}, ("name",))
    return {**shape, "anyOf": [{"required": [verb]} for verb in (*grammar.VERBS, "approval")]}


def _approval() -> dict[str, Any]:
    properties: dict[str, Any] = {
        "prompt": {**TEXT, "description": "What is to be decided."},
        "timeout": {**OPTIONAL, "description": "A Go duration; without it the wait has no end."},
        "onTimeout": {"enum": [*grammar.ON_TIMEOUT, None]},
    }
    shape = closed({key: properties[key] for key in grammar.APPROVAL_KEYS}, ("prompt",))
    return {**shape, "type": ["object", "null"]}
