"""What the API hands out: a compiled workflow, a run as it stands, a run that was just published."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from flowstone.diagnostics import Diagnostic
from flowstone.run.record import NestedRun, RunRow


class Workflow(msgspec.Struct, frozen=True):
    """A compiled source: `ref` names it in runs, `path` is the file as the user would name it."""

    path: str
    source: Any
    compiled: Any
    named: Callable[[], str]
    """Finds `ref`, which needs the configuration; a mere check does not."""

    @property
    def ref(self) -> str:
        return self.named()

    @property
    def diagnostics(self) -> tuple[Diagnostic, ...]:
        return tuple(self.compiled.diagnostics)


class RunView(msgspec.Struct, frozen=True):
    """A run as it stands: its row, and its state folded from the journal (large values left out)."""

    row: RunRow
    state: Any
    driver: str | None = None
    """Who drives the run now (`pid 123`); None when nobody does."""
    children: tuple[NestedRun, ...] = ()
    """The runs of nested workflows, the oldest first."""


class Started(msgspec.Struct, frozen=True):
    """A run that exists now; `resumed` when it did before. `given` is what its drive needs again."""

    run_id: str
    warnings: tuple[str, ...] = ()
    resumed: bool = False
