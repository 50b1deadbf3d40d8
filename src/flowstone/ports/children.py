"""What the dispatcher of child units asks of the driver: to run a workflow inside a run."""

from __future__ import annotations

from typing import Any, Protocol

import msgspec

from flowstone.plan.model import Plan
from flowstone.plan.units import TakeUp
from flowstone.run.outcome import Outcome


class Invocation(msgspec.Struct, frozen=True):
    """One call of a nested workflow: `arguments` are its inputs, ready and with secrets in them.

    `number` is that of the attempt; `take_up` says which attempts go on with what an earlier one began.
    `grants` are pairs of the child's name of a connection and the parent's, where they differ.
    `hash` is the unit's input hash (empty where the plan has none), `afresh` how often a person had
    the step run afresh: each time what was begun before is not taken up again.
    """

    step: str
    unit: str
    number: int
    ref: str
    plan: Plan
    digest: str
    arguments: dict[str, Any]
    provenance: tuple[tuple[str, str], ...] = ()
    """Where the child came from, if not from where its parent did."""
    grants: tuple[tuple[str, str], ...] = ()
    take_up: TakeUp = TakeUp.FIRST_ATTEMPT
    hash: str = ""
    afresh: int = 0


class ChildRuns(Protocol):
    async def perform(self, invocation: Invocation) -> Outcome:
        """Run a nested workflow to its end, as a run of its own that is linked to the parent's.

        The outcome's value is what the child exports; of one that did not succeed the error tells
        which run it is, what became of it and how to go on. Nothing in it is secret.

        An invocation that an earlier drive of the parent began is taken up, as `take_up` says: what
        succeeded in the child stands, and a child that had succeeded gives its outputs again. What happens to one
        that had stopped, and whether a further attempt starts a run anew, is the plan's ChildRule.
        Inputs that do not fit, or a child that somebody else drives, are an end without a run. When
        its task is cancelled, what the child runs is ended and the child is left to be resumed,
        before CancelledError is raised again.
        """
