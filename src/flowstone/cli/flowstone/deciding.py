"""What `approve` and `reject` share: journal the decision and tell how to go on."""

from __future__ import annotations

from flowstone.cli.render.terminal import say


def decide(run: str, step: str, note: str | None, *, approved: bool, resume: str = "flowstone resume") -> None:
    """`resume` are the words that go on with a run that nobody drives."""
    from getpass import getuser

    from flowstone.api import Flowstone

    try:
        person = getuser()
    except (KeyError, OSError):  # a user without a name
        person = "someone"
    with Flowstone() as flow:
        view = flow.decide(run, step, approved=approved, by=person, note=note)
    word = "approved" if approved else "rejected"
    say(f"{word} step {step} of {view.row.record.id}\n")
    if view.driver is None:
        say(f"go on with:  {resume} {view.row.record.id}\n")
