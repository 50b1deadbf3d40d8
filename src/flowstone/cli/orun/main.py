"""The command `orun`: a drop-in for workflows of orun.dev/v1, over the same engine as `flowstone`."""

from __future__ import annotations

from collections.abc import Sequence

from flowstone.cli.errors import Voice
from flowstone.cli.lazy import LazyGroup, Verb
from flowstone.cli.program import leave, run_program, version_option

VERBS = {
    "approve": Verb("flowstone.cli.orun.approve", "Let a step go on that waits for an approval."),
    "hooks": Verb("flowstone.cli.orun.hooks", "Pin, verify and run the hooks of blueprints."),
    "plan": Verb("flowstone.cli.orun.job_plan", "Check a job and pin it in a plan file."),
    "reject": Verb("flowstone.cli.orun.reject", "Refuse a step that waits for an approval."),
    "run": Verb("flowstone.cli.orun.job_run", "Run a planned job, or go on with a run of one."),
    "workflow": Verb("flowstone.cli.orun.workflow", "Validate, view and run workflow files."),
}

command = LazyGroup(
    "orun",
    VERBS,
    bare_usage=True,
    help="Run orun.dev/v1 workflow files durably.",
    epilog="Example: orun workflow run release.yaml --set version=1.2",
    params=[version_option()],
)


def run(argv: Sequence[str] | None = None, name: str = "orun") -> int:
    """Run with the words behind the command's name; returns the exit code."""
    return run_program(command, Voice.ORUN, argv, name)


def main() -> None:
    leave(run())
