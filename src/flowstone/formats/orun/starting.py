"""Starting orun runs: inputs from `--set`, grants from `--connection`, exec ids (Dialect port)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from flowstone.ports.dialect import Given, Resolved
from flowstone.ports.projection import Projection
from flowstone.values import canonical_json

STATUS_WORDS = {"upstream_failed": "blocked", "open": "running", "held": "blocked", "cancelled": "failed"}


class OrunDialect:
    name = "orun"

    @property
    def projection(self) -> Projection | None:
        from flowstone.formats.orun.dialect import OrunProjection

        return OrunProjection()

    def run_id(self, plan: Any, fresh: str, now_ns: int) -> str:
        return f"{plan.name}-{now_ns}"

    def resolve(self, plan: Any, given: Given) -> Resolved:
        return self._resolved(plan, given, {})

    def resume(self, plan: Any, given: Given, stored: Mapping[str, Any]) -> Resolved:
        """Stored inputs stand; a secret one must be given again, another value is refused."""
        return self._resolved(plan, given, stored)

    def connections(self, plan: Any, given: Given) -> dict[str, Any]:
        from flowstone.formats.orun.inputs import resolve_connections

        return resolve_connections(plan, given.connections)

    def word(self, status: str) -> str:
        return STATUS_WORDS.get(status, status)

    def code(self, codes: Sequence[str]) -> str:
        return "WORKFLOW_SOURCE_INVALID"

    def _resolved(self, plan: Any, given: Given, stored: Mapping[str, Any]) -> Resolved:
        from flowstone.formats.orun.inputs import resolve_inputs

        texts = {name: value if value is not None else "true" for name, value in given.texts}
        for name, value in given.values.items():
            texts[name] = value if isinstance(value, str) else canonical_json(value)
        params = resolve_inputs(plan.params, texts, stored)
        secret = {param.name for param in plan.params if param.secret}
        kept = {name: value for name, value in params.items() if name not in secret}
        secrets = tuple(_text(params[name]) for name in secret if name in params)
        return Resolved(params, kept, secrets)


def _text(value: Any) -> str:
    return value if isinstance(value, str) else canonical_json(value)


