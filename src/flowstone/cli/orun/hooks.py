"""The verbs of `orun hooks`."""

from __future__ import annotations

from flowstone.cli.lazy import LazyGroup, Verb

_HERE = "flowstone.cli.orun"
VERBS = {
    "pin": Verb(f"{_HERE}.hooks_pin", "Pin the hooks of a blueprint in .orun/provenance.lock."),
    "run": Verb(f"{_HERE}.hooks_run", "Run the hooks of one phase, if they are as pinned."),
    "verify": Verb(f"{_HERE}.hooks_verify", "Show that all hooks are as they were pinned."),
}

command = LazyGroup(
    "hooks",
    VERBS,
    bare_help=True,
    help="Pin, verify and run the hooks of blueprints.",
    epilog="Example: orun hooks pin service.yaml && orun hooks run service.yaml postCreate",
)
