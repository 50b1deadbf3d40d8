"""A child run that stopped → the account of it in its parent, with the commands that go on from there."""

from __future__ import annotations

from flowstone.ports.dialect import StoppedChild
from flowstone.run.outcome import Reason


def account(child: StoppedChild) -> str:
    """What became of a child and what to do (akm facts 20); commands stand in lines of their own."""
    named = f"Child workflow run {child.run} ({child.ref})"
    where = f' at step "{child.step}"' if child.step is not None else ""
    why = f": {child.error}" if child.error else ""
    match child.reason:
        case Reason.CHILD_BLOCKED:
            commands = "\n".join(recovery(child))
            return f"{named} is blocked{where}{why}\nIt is not resumed with its parent. To go on:\n{commands}"
        case Reason.CHILD_PUBLISH_FAILED:
            return f"Child workflow {child.ref} could not be started{why}"
        case Reason.CHILD_BUSY:
            return f"{named} is being driven by another process; run this one again when it has ended."
        case _:
            return f"{named} failed{where}{why}\nSee: akm workflow status {child.run}"


def recovery(child: StoppedChild) -> tuple[str, ...]:
    """The commands that take up a blocked child: every blocked run, the deepest first, then the parent."""
    runs = (*child.held, child.run, child.parent)
    return (*(f"akm workflow resume {run}" for run in runs), f"akm workflow run {child.parent}")
