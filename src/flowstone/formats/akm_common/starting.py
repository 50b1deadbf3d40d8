"""Starting akm runs: params from flags or values, and what of them must be scrubbed (Dialect port)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from flowstone.formats.akm_common.credentials import flagged_values, scan
from flowstone.formats.akm_common.dialect import RUN_WORDS, STEP_WORDS
from flowstone.ports.dialect import Given, Resolved
from flowstone.ports.projection import Projection
from flowstone.run.events import RunStatus, Status


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

        params = coerce_flags(plan.params, given.texts) | dict(given.values)
        if given.values:
            check_params(plan.params, params)
        warnings = tuple(
            f"Param {found.path} {found.why}. Params are stored and shown in full; bind secrets by an env: ref."
            for found in scan(params)
        )
        return Resolved(params, params, tuple(flagged_values(params)), warnings)

    def resume(self, plan: Any, given: Given, stored: Mapping[str, Any]) -> Resolved:
        params = dict(stored)
        return Resolved(params, params, tuple(flagged_values(params)))

    def connections(self, plan: Any, given: Given) -> dict[str, Any]:
        return {}

    def word(self, status: str) -> str:
        if status in STEP_WORDS:
            return STEP_WORDS[Status(status)]
        return RUN_WORDS[RunStatus(status)] if status in RUN_WORDS else status

    def code(self, codes: Sequence[str]) -> str:
        from flowstone.formats.akm_common.compile import usage_code_of

        return usage_code_of(codes[0] if codes else None)
