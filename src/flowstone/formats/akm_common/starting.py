"""Starting akm runs: params from flags or values, and what of them must be scrubbed (Dialect port)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from flowstone.formats.akm_common.credentials import flagged_values, scan
from flowstone.ports.dialect import Given, Resolved
from flowstone.ports.projection import Projection

STATUS_WORDS = {
    "open": "pending",
    "succeeded": "completed",
    "held": "blocked",
    "upstream_failed": "blocked",
    "cancelled": "failed",
    "abandoned": "failed",
}
COMPOSITION_CODES = frozenset({"multi-job-unsupported", "with-unsupported"})


class AkmDialect:
    name = "akm"

    @property
    def projection(self) -> Projection | None:
        return None

    def run_id(self, plan: Any, fresh: str, now_ns: int) -> str:
        return fresh

    def resolve(self, plan: Any, given: Given) -> Resolved:
        """Flags by declared type, defaults for what is absent; suspicious values draw a warning."""
        from flowstone.formats.akm_common.flags import check_params, coerce_flags

        params = {param.name: param.default for param in plan.params if param.has_default}
        params |= coerce_flags(plan.params, list(given.texts))
        params |= given.values
        check_params(plan.params, params)
        warnings = tuple(
            f"Param {found.path} {found.why}. Params are stored and shown in full; bind secrets with an env: ref instead."
            for found in scan(params)
        )
        return Resolved(params, params, tuple(flagged_values(params)), warnings)

    def resume(self, plan: Any, given: Given, stored: Mapping[str, Any]) -> Resolved:
        params = dict(stored)
        return Resolved(params, params, tuple(flagged_values(params)))

    def connections(self, plan: Any, given: Given) -> dict[str, Any]:
        return {}

    def word(self, status: str) -> str:
        return STATUS_WORDS.get(status, status)

    def code(self, codes: Sequence[str]) -> str:
        if not codes:
            return "WORKFLOW_SOURCE_INVALID"
        if codes[0] in COMPOSITION_CODES:
            return "COMPOSITION_INVALID"
        return "INPUT_BINDING_INVALID" if codes[0].startswith("input-binding") else "WORKFLOW_SOURCE_INVALID"
