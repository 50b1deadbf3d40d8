"""Free slots: each unit that runs takes a token from every limit that it is under.

A unit that waits for its next attempt holds none.
"""

from __future__ import annotations

from flowstone.plan.model import FanOut
from flowstone.plan.units import AgentSpec, AnySpec, LlmSpec
from flowstone.run.state import StepState
from flowstone.scheduler.commands import Turn


def free_slots(turn: Turn) -> int | None:
    """Units that the run may start now by its own and the host's limit; None for any number."""
    limits = [width for width in (turn.facts.run_width, turn.facts.host_width) if width is not None]
    return max(0, max(1, min(limits)) - turn.state.running) if limits else None


def free_in_step(turn: Turn, step: StepState) -> int | None:
    """Units of one step that may start now; a fan-out is also bounded by its own width."""
    free = free_for(turn, step.plan.unit.spec if step.plan.unit else None)
    action = step.plan.action
    if isinstance(action, FanOut):
        widths = [w for w in (action.width, turn.state.plan.limits.step_width) if w is not None]
        if widths:
            own = max(0, max(1, min(widths)) - step.running)
            free = own if free is None else min(free, own)
    return free


def free_for(turn: Turn, spec: AnySpec | None) -> int | None:
    """Dispatches of a spec that may start now by the limits of the run, the host and its engine."""
    free = free_slots(turn)
    if not isinstance(spec, (LlmSpec, AgentSpec)) or spec.concurrency is None:
        return free
    left = max(0, spec.concurrency - turn.state.engines.get(spec.engine, 0))
    return left if free is None else min(free, left)


def starved(turn: Turn, step: StepState) -> bool:
    """Whether it is a limit that other steps share, not the step's own, that leaves no slot."""
    gate = step.plan.gate
    if gate is not None and gate.judge is not None and step.closed == step.count:
        return free_for(turn, gate.judge) == 0
    return free_for(turn, step.plan.unit.spec if step.plan.unit else None) == 0


def feed_starved(turn: Turn) -> None:
    """While there is a slot, the first step that waited for one is looked at again."""
    if free_slots(turn) == 0:
        return
    waiting = []
    while (place := turn.state.starved.take()) is not None:
        if not starved(turn, turn.state.order[place]):
            turn.state.wake(place)
            break
        waiting.append(place)
    for place in waiting:
        turn.state.starved.add(place)
