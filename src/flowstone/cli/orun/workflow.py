"""The verbs of `orun workflow`."""

from __future__ import annotations

from flowstone.cli.lazy import LazyGroup, Verb

VERBS = {
    "digest": Verb("flowstone.cli.orun.digest", "Print the SHA-256 of a valid file."),
    "run": Verb("flowstone.cli.orun.run", "Run a file, or resume a run of it."),
    "validate": Verb("flowstone.cli.orun.validate", "Check a file and print its digest."),
    "view": Verb("flowstone.cli.orun.view", "Print the steps of a file and what they wait for."),
}

command = LazyGroup(
    "workflow",
    VERBS,
    bare_help=True,
    help="Validate, view and run workflow files.",
    epilog="Example: orun workflow run release.yaml --set version=1.2",
)
