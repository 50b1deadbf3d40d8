"""Free slots: each unit that runs takes a token from every limit that it is under.

A unit that waits for its next attempt holds none.
"""

from __future__ import annotations

from flowstone.plan.model import FanOut
from flowstone.run.state import StepState
from flowstone.scheduler.commands import Turn


def free_slots(turn: Turn) -> int | None:
    """Units that the run may start now by its own and the host's limit; None for any number."""
    limits = [width for width in (turn.facts.run_width, turn.facts.host_width) if width is not None]
    return max(0, max(1, min(limits)) - turn.state.running) if limits else None


def free_in_step(turn: Turn, step: StepState) -> int | None:
    """Units of one step that may start now; a fan-out is also bounded by its own width."""
    free = free_slots(turn)
    action = step.plan.action
    if isinstance(action, FanOut):
        widths = [w for w in (action.width, turn.state.plan.limits.step_width) if w is not None]
        if widths:
            own = max(0, max(1, min(widths)) - step.running)
            free = own if free is None else min(free, own)
    return free


def starved_by_run(turn: Turn) -> bool:
    """Whether it is the run's limit, not the step's, that leaves no slot."""
    return free_slots(turn) == 0
