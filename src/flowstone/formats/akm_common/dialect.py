"""How akm starts runs, and the words that it has for what the core calls by its own (Dialect port)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from flowstone.formats.akm_common.codes import usage_code_of
from flowstone.plan.model import Plan
from flowstone.ports.dialect import Given, Resolved, StoppedChild, Via
from flowstone.ports.projection import Projection
from flowstone.run.events import RunStatus, Status

_WORDS = {
    Status.OPEN.value: "pending",
    Status.SUCCEEDED.value: "completed",
    Status.UPSTREAM_FAILED.value: "pending",
    Status.HELD.value: "blocked",
    Status.CANCELLED.value: "pending",
    RunStatus.ABANDONED.value: "failed",
}
"""A step that is being executed is still pending; all other words are the core's own."""


class AkmDialect:
    """The Dialect port for akm."""

    name = "akm"

    @property
    def projection(self) -> Projection | None:
        return None

    def run_id(self, plan: Plan, fresh: str, now_ns: int) -> str:
        return fresh

    def resolve(self, plan: Plan, given: Given) -> Resolved:
        """Flags read by declared type, ready values, then defaults; what looks secret draws a warning."""
        from flowstone.formats.akm_common.credentials import scan, secrets_of, warning
        from flowstone.formats.akm_common.flags import check_params, coerce_flags

        params = coerce_flags(plan.params, given.texts, given.values, given.via)
        check_params(plan.params, params, flags=bool(given.texts) and given.via is Via.FLAG)
        warnings = tuple(warning(finding) for finding in scan(params))
        return Resolved(params, params, secrets_of(plan.params, params), warnings)

    def resume(self, plan: Plan, given: Given, stored: Mapping[str, Any]) -> Resolved:
        """The stored params, which no flag may change."""
        from flowstone.errors import InputError
        from flowstone.formats.akm_common.credentials import secrets_of

        if given.texts or given.values:
            what = "Workflow parameter flags" if given.texts and given.via is Via.FLAG else "Params"
            raise InputError(f"{what} can only be set on a new run.")
        params = dict(stored)
        return Resolved(params, params, secrets_of(plan.params, params))

    def connections(self, plan: Plan, given: Given) -> dict[str, Any]:
        return {}

    def bare_exports(self, run_id: str) -> dict[str, Any]:
        return {"runId": run_id, "status": self.word(RunStatus.SUCCEEDED)}

    def stopped(self, child: StoppedChild) -> str:
        from flowstone.formats.akm_common.children import account

        return account(child)

    def word(self, status: str) -> str:
        return _WORDS.get(status, status)

    def code(self, codes: Sequence[str]) -> str:
        return usage_code_of(codes)


def template(name: str, updated: str, schema: str = "akm-workflow.json") -> str:
    """The file that `akm workflow create` writes for a workflow of this name; it lints clean.

    `updated` is a date (2026-01-31), `schema` where an editor finds the published JSON Schema.
    """
    title = name.rsplit("/", 1)[-1].replace("-", " ").replace("_", " ").strip().title() or "Workflow"
    return _TEMPLATE.replace("@TITLE@", title).replace("@UPDATED@", updated).replace("@SCHEMA@", schema)


_TEMPLATE = """\
---
# yaml-language-server: $schema=@SCHEMA@
type: workflow
updated: @UPDATED@
description: Say in one line what this workflow is for
params:
  topic: { type: string, description: What the workflow is about }
steps:
  - id: prepare
    unit:
      exec:
        command: ["sh", "-c", "date"]
  - id: report
    inputs: [steps.prepare.output]
---

# @TITLE@

Words before the first step are free: they are shown, and never dispatched.

## prepare

A unit with `exec` runs its command; this text tells people what it does.

## report

Write a short report about the `topic` parameter. The date from `prepare` is attached to this step.
"""
