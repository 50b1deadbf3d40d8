"""Outcomes: how an attempt ended, as a value, and which failures may be retried."""

from __future__ import annotations

from enum import StrEnum
from typing import Any

import msgspec

from flowstone.plan.bounds import BLOB_BYTES
from flowstone.values import canonical_bytes


class Reason(StrEnum):
    """Why an attempt or a step failed; one closed list."""

    TIMEOUT = "timeout"
    SPAWN_FAILED = "spawn_failed"
    NON_ZERO_EXIT = "non_zero_exit"
    PARSE_ERROR = "parse_error"
    COOLDOWN = "cooldown"
    LLM_RATE_LIMIT = "llm_rate_limit"
    LLM_CONTENT_FILTER = "llm_content_filter"
    LLM_INVALID_JSON = "llm_invalid_json"
    CONTENT_POLICY_REJECT = "content_policy_reject"
    UNSUPPORTED_TYPE = "unsupported_type"
    NO_CHANGE = "no_change"
    ABORTED = "aborted"
    VALIDATION_ERROR = "validation_error"
    DISPATCH_ERROR = "dispatch_error"
    ENV_UNSUPPORTED = "env_unsupported"
    ISOLATION_UNSUPPORTED = "isolation_unsupported"
    BUDGET_EXCEEDED = "budget_exceeded"
    UNIT_CAP_EXCEEDED = "unit_cap_exceeded"
    EXPRESSION_ERROR = "expression_error"
    JOURNAL_WRITE_FAILED = "journal_write_failed"
    WORKTREE_FAILED = "worktree_failed"
    REPORTED_FAILURE = "reported_failure"
    EXEC_CAPTURE_INCOMPLETE = "exec_capture_incomplete"
    EXEC_OUTPUT_LIMIT = "exec_output_limit"
    EXEC_CONTEXT_TOO_LARGE = "exec_context_too_large"
    EXEC_CWD_ESCAPE = "exec_cwd_escape"
    OUTPUT_ERROR = "output_error"
    HTTP_ERROR = "http_error"
    SCRIPT_ERROR = "script_error"
    POLL_EXPIRED = "poll_expired"
    ROUTE_ERROR = "route_error"
    VOTE_TIED = "vote_tied"
    CHILD_FAILED = "child_workflow_failed"
    CHILD_BLOCKED = "child_workflow_blocked"
    CHILD_PUBLISH_FAILED = "child_workflow_publish_failed"
    CHILD_BUSY = "child_workflow_busy"


RETRYABLE = (
    Reason.TIMEOUT,
    Reason.SPAWN_FAILED,
    Reason.NON_ZERO_EXIT,
    Reason.PARSE_ERROR,
    Reason.COOLDOWN,
    Reason.LLM_RATE_LIMIT,
    Reason.LLM_CONTENT_FILTER,
    Reason.LLM_INVALID_JSON,
    Reason.CONTENT_POLICY_REJECT,
    Reason.UNSUPPORTED_TYPE,
    Reason.NO_CHANGE,
    Reason.ABORTED,
)
"""The reasons that an author may list in `retry.on` (akm facts 18)."""


class Exchange(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a model was told and what it answered, redacted and clipped, for people."""

    request: str
    answer: str = ""


class Outcome(msgspec.Struct, frozen=True, omit_defaults=True, array_like=False):
    """How one attempt ended. `reason` is None for success.

    `value` is the unit's result, already redacted (None also stands for "no output": then
    `absent`). Large values are in the blob store under `blob` and `value` is None. `error` is one
    line for people; `diagnostic` is what is kept for `status --units`, clipped. `ran` tells whether
    the work was really started: an attempt that could not start never satisfies a poll. `tokens` are
    all that a model used, `tokens_in` and `tokens_out` its two parts where they were told.
    """

    reason: Reason | None = None
    value: Any = None
    absent: bool = False
    blob: str | None = None
    error: str | None = None
    diagnostic: str | None = None
    ran: bool = True
    exit_code: int | None = None
    stdout: str | None = None
    stderr: str | None = None
    tokens: int | None = None
    tokens_in: int | None = None
    tokens_out: int | None = None
    retry_after_ms: int | None = None
    warnings: tuple[str, ...] = ()
    session: str | None = None
    child_run: str | None = None
    exchange: tuple[Exchange, ...] = ()
    of_step: bool = False
    """What failed concerns the step as a whole: any unit of it would have failed so."""

    @property
    def ok(self) -> bool:
        return self.reason is None


def is_large(value: Any) -> bool:
    """Whether a value travels by digest: its canonical JSON has more than `BLOB_BYTES` bytes."""
    if isinstance(value, str):
        return len(value) > BLOB_BYTES // LONGEST_ESCAPE and len(canonical_bytes(value)) > BLOB_BYTES
    return isinstance(value, (list, dict)) and len(canonical_bytes(value)) > BLOB_BYTES


LONGEST_ESCAPE = 6
"""Bytes that JSON needs at most for one character."""


def failed(reason: Reason, error: str, *, ran: bool = True) -> Outcome:
    """An outcome that failed; the error is its diagnostic too."""
    return Outcome(reason=reason, error=error, diagnostic=error, ran=ran)
