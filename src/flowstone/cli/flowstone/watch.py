"""Who watches a drive for the people in front of it: a live view on a terminal, else whole lines."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from flowstone.cli.render.lines import PlainLines, summary
from flowstone.cli.render.terminal import say, terminal_of
from flowstone.views.children import stopped_with_a_child
from flowstone.views.progress import Word

if TYPE_CHECKING:
    from flowstone.cli.render.live import LiveView
    from flowstone.drivers.drive import DriveReport
    from flowstone.run.state import State
    from flowstone.views.progress import Word


class Progress:
    """Progress of one drive on stdout (with `on_stderr` there), and the account of it at the end."""

    def __init__(self, word: Word, *, quiet: bool = False, on_stderr: bool = False) -> None:
        self._stream = sys.stderr if on_stderr else sys.stdout
        self._terminal = terminal_of(self._stream)
        self._word = word
        self.observer: LiveView | PlainLines | None = None
        if quiet:
            return
        if self._terminal.live:
            from flowstone.cli.render.live import LiveView

            self.observer = LiveView(self._stream, word, self._terminal)
        else:
            self.observer = PlainLines(self._stream, word)

    def close(self) -> None:
        if self.observer is not None:
            self.observer.close()

    def tell_end(self, report: DriveReport) -> None:
        """The summary, unless the live view has left one, and what to do next."""
        state = report.state
        if isinstance(self.observer, PlainLines):
            say("".join(f"{line}\n" for line in summary(state, self._word, self._terminal)), self._stream)
        for line in next_steps(report, state):
            say(f"{line}\n", sys.stderr)


def next_steps(report: DriveReport, state: State) -> list[str]:
    """What is wrong with a run that did not succeed, and the command that goes on with it."""
    if state.status == "succeeded":
        return []
    lines = []
    if report.end.problem:
        lines.append(f"error: the run cannot complete: {report.end.problem}")
    elif state.error and not any(step.error == state.error for step in state.order):
        lines.append(f"error: {state.error}")
    if report.end.halt == "interrupted":
        lines.append(f"interrupted ({report.end.cause}); nothing that is done is lost")
    elif report.end.halt == "rejected":
        for step in state.order:
            if step.spent:
                lines.append(f"step {step.id} was rejected by its gate: {step.rejections[-1].feedback}")
                lines += [f"  missing: {missing}" for missing in step.rejections[-1].missing]
        lines.append("a resume allows the step its executions anew")
    elif report.end.halt == "steps-spent":
        lines.append("stopped: as many steps ended as --max-steps allows")
    if stopped_with_a_child(state):
        return [*lines, "see how to go on with: flowstone status --last"]
    return [*lines, "go on with:  flowstone resume --last", "see why with: flowstone status --last --units"]
