"""The command `akm`: a drop-in for the reference, over the same engine as `flowstone`."""

from __future__ import annotations

from collections.abc import Sequence

from flowstone.cli.errors import Voice
from flowstone.cli.lazy import LazyGroup, Verb
from flowstone.cli.program import leave, run_program, version_option

VERBS = {
    "bundle": Verb("flowstone.cli.akm.bundle", "List and make bundles, the folders of assets."),
    "config": Verb("flowstone.cli.akm.config", "Read and change the configuration."),
    "curate": Verb("flowstone.cli.akm.curate", "Show the few assets that have to do with a task."),
    "env": Verb("flowstone.cli.akm.env", "Keep variables for commands in env assets."),
    "lint": Verb("flowstone.cli.akm.lint", "Check assets for mistakes."),
    "log": Verb("flowstone.cli.akm.log", "Show what runs have recorded."),
    "search": Verb("flowstone.cli.akm.search", "Find assets by words."),
    "secret": Verb("flowstone.cli.akm.secret", "Keep secrets that env assets name."),
    "show": Verb("flowstone.cli.akm.show", "Show an asset with its parameters and steps."),
    "task": Verb("flowstone.cli.akm.task", "Write, run and schedule tasks."),
    "workflow": Verb("flowstone.cli.akm.workflow", "Create, run and follow workflows."),
}

command = LazyGroup(
    "akm",
    VERBS,
    help="Run workflow assets durably: what was done is kept, and a run goes on where it stopped.",
    epilog="Example: akm workflow run workflows/release --version 1.2",
    params=[version_option()],
)


def run(argv: Sequence[str] | None = None, name: str = "akm") -> int:
    """Run with the words behind the command's name; returns the exit code."""
    return run_program(command, Voice.AKM, argv, name)


def main() -> None:
    leave(run())
