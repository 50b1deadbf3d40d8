"""Codes of diagnostics → the error code under which a command refuses the source."""

from __future__ import annotations

from collections.abc import Sequence

_COMPOSITION = frozenset({"multi-job-unsupported", "with-unsupported"})


def usage_code_of(codes: Sequence[str]) -> str:
    """The error code for the codes of a source's errors, in order: the first mistake decides."""
    first = codes[0] if codes else ""
    if first in _COMPOSITION:
        return "COMPOSITION_INVALID"
    return "INPUT_BINDING_INVALID" if first.startswith("input-binding") else "WORKFLOW_SOURCE_INVALID"
