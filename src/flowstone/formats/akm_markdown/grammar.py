"""The words of a Markdown workflow's front matter: which keys stand where, and which values are words.

The parser and the published JSON Schema both read these tables.
"""

from __future__ import annotations

ENVELOPE_KEYS = (
    "type",
    "description",
    "tags",
    "when_to_use",
    "xrefs",
    "updated",
    "timestamp",
    "generated",
    "verified",
    "provenance",
    "status",
    "stale_after",
)
ROOT_KEYS = (*ENVELOPE_KEYS, "params", "defaults", "budget", "outputs", "steps")
ENVELOPE_TEXTS = ("description", "when_to_use", "updated", "timestamp", "stale_after")
STATUSES = ("draft", "stable", "deprecated")
STAMP_KEYS = ("by", "at")
DEFAULTS_KEYS = ("engine", "model", "llm", "timeout", "on_error")
BUDGET_KEYS = ("max_units", "max_tokens")
EXPORT_KEYS = ("from", "schema")
STEP_KEYS = ("id", "unit", "map", "route", "inputs", "output", "gate")
UNIT_KEYS = (
    "exec",
    "engine",
    "model",
    "llm",
    "timeout",
    "retry",
    "on_error",
    "output",
    "env",
    "isolation",
)
ENGINE_ONLY_KEYS = ("engine", "model", "llm")
"""What an exec unit cannot carry: it names no engine."""
EXEC_KEYS = ("command", "cwd", "pass_env")
RETRY_KEYS = ("max", "on")
MAP_KEYS = ("over", "concurrency", "reducer", "unit")
ROUTE_KEYS = ("input", "when", "default")
BRANCH_KEYS = ("match", "step")
GATE_KEYS = ("max_loops",)
ON_ERROR = ("fail", "continue")
ISOLATIONS = ("none", "worktree")
REDUCERS = ("collect", "vote")
GATE_HEADING = "gate"
WORKFLOW_PREFIX = "Workflow:"
"""What the text of the H1 must not begin with: an old spelling of the title."""
SCHEMA_VERSION = 1
