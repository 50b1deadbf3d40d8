"""The words and bounds of task files (akm facts 27.1), read by parser, conversion and writer."""

from __future__ import annotations

from flowstone.formats.akm_github.grammar import COMMAND_KEYS, SHELLS

VERSION = 4
OLD_VERSIONS = (2, 3)
KEYS = (
    "version", "name", "description", "when_to_use", "tags", "inputs", "output", "uses", "run", "with", "env",
    "shell", "working-directory", "schedule", "agent", "engine", "model", "inference", "tools", "timeout",
    "redact", "maxSteps", "maxRetries",
)  # fmt: skip
REMOVED = {
    "akm": "write its keys at the root: engine, model, timeout, redact, maxSteps, maxRetries …",
    "on": 'write schedule: "0 6 * * *" at the root; enabling is done on each machine: akm task enable',
}
"""Keys of older versions, with what takes their place."""
RUN_ONLY = ("shell", "working-directory")
TEXT_KEYS = ("name", "description", "when_to_use")
DISPATCH_TEXTS = ("agent", "model")
INPUT_KEYS = (
    "type", "enum", "properties", "items", "additionalProperties", "minItems", "maxItems", "minLength",
    "maxLength", "minimum", "maximum", "allOf", "anyOf", "oneOf", "not", "title", "description", "default",
    "required",
)  # fmt: skip
"""The enforced schema subset, with `required` as the input's own true or false."""
OWN_INPUT_KEYS = ("default", "required")
RESERVED_INPUTS = frozenset(
    {
        "bundle", "format", "detail", "shape", "output", "scheduled", "quiet", "verbose", "help",
        "no-quiet", "no-verbose", "target",
    }
)  # fmt: skip
"""Names that flags of `task run` have, or had."""
SCHEDULE_KEYS = ("cron", "inputs")
ALIASES = {"@hourly": "0 * * * *", "@daily": "0 0 * * *", "@weekly": "0 0 * * 0", "@monthly": "0 0 1 * *"}

DEPTH = 64
NODES = 10_000
ITEMS = 1_024
ENTRIES = 256
TEXT_BYTES = 256 * 1024
INPUTS = 128
REDACTED = 32
RETRIES = 100
SCHEDULED_TIMEOUT_MS = 6 * 60 * 60 * 1000
"""Of a scheduled task whose target is a workflow and that says nothing itself."""

__all__ = ["COMMAND_KEYS", "SHELLS"]
