"""The published JSON Schema of a GitHub-shaped workflow, made of the parser's tables."""

from __future__ import annotations

from typing import Any

from flowstone.formats.akm_common.published import DRAFT, FILLED, closed
from flowstone.formats.akm_common.rules import RUN_PATTERN
from flowstone.formats.akm_common.targets import USES_PATTERN
from flowstone.formats.akm_github import grammar
from flowstone.plan import bounds

_TEXT = {"type": "string"}


def github_schema() -> dict[str, Any]:
    jobs = {
        "description": "Exactly one job.",
        "type": "object",
        "minProperties": 1,
        "maxProperties": 1,
        "propertyNames": {"pattern": bounds.GITHUB_ID},
        "additionalProperties": _job(),
    }
    properties = {"name": FILLED, "on": _events(), "jobs": jobs}
    return {
        "$schema": DRAFT,
        "title": "akm workflow (GitHub-shaped YAML)",
        "description": "A closed subset of GitHub's workflow syntax, run by akm on this machine.",
        **closed({key: properties[key] for key in grammar.ROOT_KEYS}, grammar.ROOT_KEYS),
        "$defs": {"step": _step()},
    }


def _events() -> dict[str, Any]:
    cron = closed({"cron": {**_TEXT, "pattern": r"^\s*[^@\s]\S*(?:\s+\S+){4}\s*$"}}, grammar.SCHEDULE_KEYS)
    properties = {
        "schedule": {"type": "array", "minItems": 1, "maxItems": bounds.SCHEDULES, "items": cron},
        "workflow_dispatch": {"type": ["object", "null"], "maxProperties": 0},
    }
    return closed({key: properties[key] for key in grammar.EVENT_KEYS}, minProperties=1)


def _job() -> dict[str, Any]:
    properties = {
        "name": FILLED,
        "needs": {"type": "array", "maxItems": 0},
        "runs-on": {"const": list(grammar.RUNNER)},
        "steps": {
            "type": "array",
            "minItems": 1,
            "maxItems": bounds.STEPS,
            "items": {"$ref": "#/$defs/step"},
        },
    }
    return closed({key: properties[key] for key in grammar.JOB_KEYS}, ("runs-on", "steps"))


def _step() -> dict[str, Any]:
    properties = {
        "id": {**_TEXT, "pattern": bounds.GITHUB_ID},
        "name": FILLED,
        "uses": {**_TEXT, "pattern": f"^(?:{USES_PATTERN})$", "description": "A stored asset, or akm/command."},
        "run": {**_TEXT, "pattern": rf"^[ \t]*{RUN_PATTERN}[ \t]*$", "description": "Token-safe words."},
        "with": {"type": "object", "propertyNames": {"pattern": grammar.WITH_KEY}},
        "env": {
            "type": "object",
            "propertyNames": {"pattern": bounds.ENV_NAME, "not": {"enum": list(grammar.UNSAFE_KEYS)}},
            "additionalProperties": {"type": ["string", "number", "boolean"]},
        },
        "shell": {"enum": list(grammar.SHELLS)},
        "working-directory": {**_TEXT, "minLength": 1, "maxLength": bounds.CWD_CHARS},
    }
    targets = [
        {"required": ["uses"], "properties": dict.fromkeys(("run", *grammar.RUN_ONLY_KEYS), False)},
        {"required": ["run"], "properties": {"uses": False, "with": False}},
    ]
    return closed({key: properties[key] for key in grammar.STEP_KEYS}, ("id",), oneOf=targets)
