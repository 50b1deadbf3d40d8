"""Free slots: each unit that runs takes a token from every limit that it is under.

A plan that froze a width for its steps is narrowed by the machine that it runs on; any other one
by the width of its run: its own, else the caller's, else `DEFAULT_RUN_WIDTH`. A unit that waits for its next
attempt holds none.
"""

from __future__ import annotations

from flowstone.plan.model import FanOut
from flowstone.run.state import StepState
from flowstone.scheduler.commands import Turn

DEFAULT_RUN_WIDTH = 4


def free_slots(turn: Turn) -> int | None:
    """Units that the run may start now, whatever their steps; None for any number."""
    limits, facts = turn.state.plan.limits, turn.facts
    if limits.step_width is None:
        width: int | None = limits.run_width or facts.run_width or DEFAULT_RUN_WIDTH
    else:
        widths = [w for w in (limits.run_width, facts.run_width, facts.host_width) if w is not None]
        width = min(widths, default=None)
    return None if width is None else max(0, max(1, width) - turn.state.running)


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
