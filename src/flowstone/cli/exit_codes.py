"""Exit codes: one table from errors to what a process ends with (akm facts 21.4)."""

from __future__ import annotations

from flowstone.errors import (
    CompileError,
    ConfigError,
    FlowstoneError,
    FreezeError,
    LeaseHeld,
    NotFound,
    PlanVersionError,
    SourceError,
    UnknownRun,
    UsageError,
)

OK = 0
FAILED = 1
USAGE = 2
UNHEALTHY = 4
INTERNAL = 70
OUTPUT = 74
BUSY = 75
CONFIG = 78
HANGUP = 129
INTERRUPTED = 130
TERMINATED = 143

BY_CODE = {
    "PATH_ESCAPE_VIOLATION": USAGE,
    "RUN_LEASE_HELD": BUSY,
    "STATE_DB_CONTENDED": BUSY,
    "MAINTENANCE_BARRIER_BUSY": BUSY,
    "TASK_SOURCE_INVALID": USAGE,
    "TASK_SCHEMA_VERSION_UNSUPPORTED": USAGE,
    "SCHEDULER_UNAVAILABLE": FAILED,
    "SCHEDULER_REFUSED": FAILED,
    "INVALID_CONFIG_FILE": CONFIG,
    "OUTPUT_FAILED": OUTPUT,
}
"""Codes that decide whatever the type of their error is."""

BY_TYPE: tuple[tuple[type[FlowstoneError], int], ...] = (
    (NotFound, FAILED),
    (UnknownRun, FAILED),
    (UsageError, USAGE),
    (SourceError, USAGE),
    (CompileError, USAGE),
    (FreezeError, USAGE),
    (PlanVersionError, USAGE),
    (ConfigError, CONFIG),
    (LeaseHeld, BUSY),
)
"""The first type that fits decides; any other error is internal."""


def exit_code(error: FlowstoneError) -> int:
    """What a process ends with that stops because of `error`."""
    if error.code in BY_CODE:
        return BY_CODE[error.code]
    return next((code for kind, code in BY_TYPE if isinstance(error, kind)), INTERNAL)


def signal_exit(number: int) -> int:
    """What a process ends with that a signal has stopped."""
    return 128 + number
