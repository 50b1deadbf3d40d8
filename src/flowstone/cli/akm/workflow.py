"""The verbs of `akm workflow`, and what became of those that are gone."""

from __future__ import annotations

from flowstone.cli.lazy import LazyGroup, Verb

VERBS = {
    "abandon": Verb("flowstone.cli.akm.abandon", "End a run for good."),
    "create": Verb("flowstone.cli.akm.create", "Write a new workflow from a template or a file."),
    "list": Verb("flowstone.cli.akm.list", "List runs, the newest first."),
    "plan": Verb("flowstone.cli.akm.plan", "Show what a run would do; writes nothing."),
    "resume": Verb("flowstone.cli.akm.resume", "Reopen a failed or blocked run."),
    "run": Verb("flowstone.cli.akm.run", "Start a workflow, or go on with a run."),
    "status": Verb("flowstone.cli.akm.status", "Show where a run stands."),
}

_RUN = "Use `akm workflow run <ref or run id>`: it starts a workflow and drives it to its end."
REMOVED = {
    "start": _RUN,
    "next": _RUN,
    "complete": f"Steps are completed by the engine. {_RUN}",
    "brief": "Use `akm workflow status <run id> --units`.",
    "report": "Use `akm workflow status <run id> --format html`.",
    "template": "Use `akm workflow create <name> --print`.",
    "validate": "Use `akm lint --type workflows`.",
    "watch": "Use `akm workflow status <run id>`, or `flowstone status <run id> --watch`.",
}

command = LazyGroup(
    "workflow",
    VERBS,
    removed=REMOVED,
    help="Create, run and follow workflows.",
    epilog="Example: akm workflow run workflows/release --version 1.2 --format text",
)
