"""akm's words for what the core calls by its own: the statuses of views, and the templates of files."""

from __future__ import annotations

from flowstone.run.events import RunStatus, Status

STEP_WORDS: dict[Status, str] = {
    Status.PENDING: "pending",
    Status.OPEN: "pending",
    Status.SUCCEEDED: "completed",
    Status.SKIPPED: "skipped",
    Status.FAILED: "failed",
    Status.UPSTREAM_FAILED: "pending",
    Status.HELD: "blocked",
    Status.CANCELLED: "pending",
}
"""A step that is being executed is still pending: akm says more about units only."""

UNIT_WORDS: dict[Status, str] = {
    Status.PENDING: "pending",
    Status.OPEN: "running",
    Status.SUCCEEDED: "completed",
    Status.SKIPPED: "skipped",
    Status.FAILED: "failed",
    Status.UPSTREAM_FAILED: "pending",
    Status.HELD: "failed",
    Status.CANCELLED: "failed",
}

RUN_WORDS: dict[RunStatus, str] = {
    RunStatus.ACTIVE: "active",
    RunStatus.SUCCEEDED: "completed",
    RunStatus.FAILED: "failed",
    RunStatus.HELD: "blocked",
    RunStatus.ABANDONED: "failed",
}

SCHEMA_FILES = {"akm-markdown": "akm-workflow.json", "akm-github": "akm-github-workflow.json"}


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
