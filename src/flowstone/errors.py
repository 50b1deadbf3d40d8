"""The exceptions of flowstone, one tree.

    FlowstoneError
    ├── SourceError            a source cannot be read: missing, too large, not text
    ├── CompileError           an author's mistakes; carries the diagnostics
    ├── FreezeError            a plan cannot be frozen: a target or an engine is missing
    ├── UsageError             the caller asked for something that cannot be
    │   ├── InputError         a param, input or flag value does not fit
    │   ├── UnknownRun         no such run
    │   ├── NotFound           no such workflow, asset or file
    │   └── IllegalTransition  the run's state does not allow the verb
    ├── ConfigError            the configuration is wrong or lacks something
    ├── PlanVersionError       a frozen plan of another version, or damaged
    │   └── DigestMismatch     a source is not the one that the run started with
    ├── StoreError             the store cannot be used: full, read-only, locked
    │   ├── JournalConflict    another driver appended first
    │   ├── LeaseHeld          another driver holds the run
    │   └── CorruptJournal     what is stored cannot be understood
    ├── DispatchSetupError     no unit can be dispatched at all (not a unit's own failure)
    └── InternalError          a bug of flowstone

A unit that fails is no exception but a value (`flowstone.run.outcome.Outcome`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from flowstone.diagnostics import Diagnostic


class FlowstoneError(Exception):
    """Base of all: `code` is stable and for scripts, `hint` says what to do instead."""

    code = "ERROR"

    def __init__(self, message: str, *, code: str | None = None, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.code = code or self.code
        self.hint = hint


class SourceError(FlowstoneError):
    code = "WORKFLOW_SOURCE_INVALID"


class CompileError(FlowstoneError):
    """A source that does not compile: `path` as the user gave it, `diagnostics` sorted by place."""

    code = "WORKFLOW_SOURCE_INVALID"

    def __init__(self, path: str, diagnostics: tuple[Diagnostic, ...], *, code: str | None = None) -> None:
        lines = (f"{path}:{d.place.line}: {d.message}" if d.place.line else f"{path}: {d.message}" for d in diagnostics)
        super().__init__("\n".join(lines), code=code)
        self.path = path
        self.diagnostics = diagnostics


class FreezeError(FlowstoneError):
    code = "FREEZE_FAILED"


class UsageError(FlowstoneError):
    code = "INVALID_FLAG_VALUE"


class InputError(UsageError):
    code = "INVALID_FLAG_VALUE"


class UnknownRun(UsageError):
    code = "WORKFLOW_NOT_FOUND"


class NotFound(UsageError):
    code = "ASSET_NOT_FOUND"


class IllegalTransition(UsageError):
    code = "RUN_NOT_ACTIVE"


class ConfigError(FlowstoneError):
    code = "INVALID_CONFIG_FILE"


class PlanVersionError(FlowstoneError):
    code = "WORKFLOW_IR_VERSION_UNSUPPORTED"


class DigestMismatch(PlanVersionError):
    code = "WORKFLOW_SOURCE_CHANGED"


class StoreError(FlowstoneError):
    code = "STATE_DB_UNAVAILABLE"


class JournalConflict(StoreError):
    code = "JOURNAL_CONFLICT"


class LeaseHeld(StoreError):
    """Another driver holds the run; `holder` names it (its process id, and host where known)."""

    code = "RUN_LEASE_HELD"

    def __init__(self, message: str, *, holder: str, hint: str | None = None) -> None:
        super().__init__(message, hint=hint)
        self.holder = holder


class CorruptJournal(StoreError):
    code = "JOURNAL_CORRUPT"


class DispatchSetupError(FlowstoneError):
    code = "DISPATCH_SETUP_FAILED"


class InternalError(FlowstoneError):
    code = "INTERNAL"
