"""What a driver asks of a dispatcher: perform one attempt of a unit and say how it ended."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol, runtime_checkable

import msgspec

from flowstone.plan.units import UnitSpec
from flowstone.run.outcome import Outcome


class Dispatch(msgspec.Struct, frozen=True, omit_defaults=True):
    """One attempt, ready to be performed: `spec` holds no templates any more.

    `context` are the context variables or blocks by name; `item` is set for fan-out units.
    `timeout_ms` None is no bound. `index` is the place of the unit in its fan-out, from 0.
    """

    run: str
    step: str
    unit: str
    number: int
    index: int
    hash: str
    spec: UnitSpec
    timeout_ms: int | None = None
    context: tuple[tuple[str, str], ...] = ()
    schema: Any = None
    has_schema: bool = False
    isolation: str = "none"
    messages: tuple[tuple[str, str], ...] = ()
    """What a model is told, as (role, text)."""
    afresh: int = 0
    """How often a person had the step run afresh: nothing of before is to be taken up."""


class Workspace(msgspec.Struct, frozen=True):
    """Where a run's units work. Paths are absolute.

    `base` is the folder of contained commands, `cwd` the one of the driver, `run_folder` the run's
    own (None where it has none), `shim_folder` the one that goes in front of PATH.
    """

    base: str
    cwd: str
    run_folder: str | None = None
    shim_folder: str | None = None
    provenance: tuple[tuple[str, str], ...] = ()


OutputLines = Callable[[str, str, Sequence[str]], None]
"""Called with (step id, unit id, redacted lines), in order, for the lines that a running unit prints."""


class Dispatcher(Protocol):
    """Performs attempts of one kind of unit.

    `perform` never raises for a unit's own failure: that is a failed Outcome. It raises
    DispatchSetupError when nothing of its kind can be performed at all. When its task is cancelled
    it ends all that it started (the whole process group: TERM, grace, KILL) before it re-raises
    CancelledError, or answers with an aborted outcome where there is something to tell. Nothing
    unredacted may leave it: values, errors, diagnostics and lines are redacted before clipping.
    """

    async def perform(self, dispatch: Dispatch) -> Outcome:
        """Run the attempt to its end."""

    async def close(self) -> None:
        """End what is left and release resources; closing twice does nothing."""


@runtime_checkable
class Beginner(Protocol):
    """A dispatcher that needs no task for an attempt: with many short ones, tasks would cost most.

    A driver that finds a dispatcher to be one begins attempts, as many as are due, and then pushes
    once. The promises are those of `Dispatcher.perform`.
    """

    def begin(self, dispatch: Dispatch, done: Callable[[Outcome | Exception], None]) -> Callable[[], None]:
        """Begin an attempt; what is returned ends it early, any number of times.

        `done` is called once, and never before `begin` has returned: with the outcome, also that of
        an attempt that was ended early, or with what `perform` would have raised.
        """

    def push(self) -> None:
        """Let what was begun go off now, not only when the event loop comes round."""
