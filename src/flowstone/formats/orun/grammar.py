"""The words, patterns and bounds of orun.dev/v1: what parser, checks and published schema share."""

from __future__ import annotations

from flowstone.plan.bounds import MORE_ATTEMPTS
from flowstone.source.yaml import YamlRules

API_VERSION = "orun.dev/v1"
OLD_API_VERSION = "torkflow/v1"
KIND = "Workflow"

NAME = r"^[a-z][a-z0-9-]*$"
"""Of workflows and steps."""
INPUT_NAME = r"^[a-z][a-zA-Z0-9]*$"
CONNECTION_NAME = r"^[a-zA-Z_][a-zA-Z0-9_-]*$"
OUTPUT_NAME = r"^[a-zA-Z_][a-zA-Z0-9_-]*$"
ENV_NAME = r"^[^=\x00]+$"

ROOT_KEYS = (
    "apiVersion",
    "kind",
    "metadata",
    "inputs",
    "connections",
    "outputs",
    "maxParallel",
    "steps",
)
METADATA_KEYS = ("name",)
INPUT_KEYS = ("type", "required", "default", "values", "pattern", "secret", "description")
CONNECTION_KEYS = ("type",)
VERBS = ("run", "action", "workflow")
STEP_KEYS = (
    "name",
    "needs",
    "if",
    *VERBS,
    "with",
    "env",
    "envInherit",
    "cwd",
    "connection",
    "timeout",
    "retry",
    "continueOnError",
    "poll",
    "outputs",
)
RETRY_KEYS = ("maxRetries", "baseDelay", "kind")
POLL_KEYS = ("interval", "timeout", "until")
RETRY_KINDS = ("fixed", "exponential")

INPUT_TYPES = ("string", "number", "integer", "boolean", "array", "object")
CONNECTION_TYPES = ("http.bearer",)
ACTIONS = {
    "http.request": ("url", "method", "body", "headers"),
    "script": ("source", "input"),
    "sleep": ("duration",),
}
"""The built-in actions with the arguments that each knows, the required one first."""

DEFAULT_TIMEOUT_MS = 600_000
DEFAULT_BASE_DELAY_MS = 1_000
LONGEST_MS = 10 * 365 * 86_400_000
"""No timeout, delay or interval is longer: ten years."""
RETRIES = MORE_ATTEMPTS
CAPTURE_BYTES = 4 * 1024 * 1024
PIPE_GRACE_MS = 10_000
NESTING = 32
"""Levels of workflows inside workflows."""
NESTED_STEPS = 10_000
"""Steps of a workflow and of all that it nests, each as often as it is nested."""
FETCHED_FILES = 256
FETCHED_BYTES = 16 * 1024 * 1024
"""Of the remote files that a workflow nests, all levels; each counts once."""
YAML = YamlRules(aliases=True, tags=True, merge_keys=True, anchors=True, text_keys_only=False, max_nodes=200_000)
BASE_ENVIRONMENT = ("PATH", "HOME", "TMPDIR")
SHIM = "orun"
