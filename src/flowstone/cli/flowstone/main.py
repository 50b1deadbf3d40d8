"""The command `flowstone`: all three languages, by what the file is, and both drop-ins."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from flowstone.cli.errors import Voice
from flowstone.cli.lazy import LazyGroup, Verb
from flowstone.cli.program import leave, run_program, version_option

_HERE = "flowstone.cli.flowstone"
VERBS = {
    "abandon": Verb(f"{_HERE}.abandon", "Give a run up."),
    "akm": Verb("flowstone.cli.akm.main", "The command akm, for those who have the original installed."),
    "approve": Verb(f"{_HERE}.approve", "Let a step through that its gate could not decide."),
    "completion": Verb(f"{_HERE}.completion", "Print the script that completes words in a shell."),
    "gc": Verb(f"{_HERE}.gc", "Remove runs and files that nobody needs any more."),
    "lint": Verb(f"{_HERE}.lint", "Check workflow files for mistakes."),
    "list": Verb(f"{_HERE}.list", "List runs, the newest first."),
    "next": Verb(f"{_HERE}.next", "Print the next times of a file's schedule."),
    "orun": Verb("flowstone.cli.orun.main", "The command orun, for those who have the original installed."),
    "plan": Verb(f"{_HERE}.plan", "Show the frozen plan of a workflow; writes nothing."),
    "reject": Verb(f"{_HERE}.reject", "Fail a step that its gate could not decide."),
    "resume": Verb(f"{_HERE}.resume", "Go on with a run that stopped."),
    "run": Verb(f"{_HERE}.run", "Run a workflow file or ref."),
    "schedule": Verb(f"{_HERE}.schedule", "Run files at their times, in the foreground."),
    "schema": Verb(f"{_HERE}.schema", "Print the JSON Schema of a language."),
    "show": Verb(f"{_HERE}.show", "Show a workflow with its parameters and steps."),
    "status": Verb(f"{_HERE}.status", "Show where a run stands."),
    "vendor": Verb(f"{_HERE}.vendor", "Pin remote workflows and what they nest in this folder."),
    "view": Verb(f"{_HERE}.view", "Print the steps of a workflow and what they wait for."),
    "why": Verb(f"{_HERE}.why", "Tell why a unit ran, was reused, failed or was skipped."),
}

command = LazyGroup(
    "flowstone",
    VERBS,
    bare_usage=True,
    help="Run workflow files durably: akm Markdown, akm YAML and orun.dev/v1.",
    epilog="Example: flowstone run release.md --set version=1.2",
    params=[version_option()],
)


def run(argv: Sequence[str] | None = None) -> int:
    """Run with the words behind the command's name; returns the exit code."""
    words = list(sys.argv[1:] if argv is None else argv)
    if words[:1] == ["akm"]:
        from flowstone.cli.akm.main import run as run_akm

        return run_akm(words[1:], "flowstone akm")
    if words[:1] == ["orun"]:
        from flowstone.cli.orun.main import run as run_orun

        return run_orun(words[1:], "flowstone orun")
    return run_program(command, Voice.FLOWSTONE, words, "flowstone")


def main() -> None:
    leave(run())
