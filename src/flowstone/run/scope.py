"""What references and expressions see of a run: the artifacts of its steps, and a step as CEL reads it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from flowstone.run.events import Status
from flowstone.run.outcome import Outcome
from flowstone.run.state import State, StepState


class Artifacts(Mapping[str, Any]):
    """The artifacts of the steps that have one: those that succeeded."""

    def __init__(self, state: State) -> None:
        self._state = state

    def __getitem__(self, step_id: str) -> Any:
        step = self._state.steps.get(step_id)
        if step is None or step.status is not Status.SUCCEEDED:
            raise KeyError(step_id)
        return step.artifact

    def __iter__(self) -> Iterator[str]:
        return (s.id for s in self._state.order if s.status is Status.SUCCEEDED)

    def __len__(self) -> int:
        return sum(1 for _ in self)


def step_view(step: StepState) -> dict[str, Any]:
    """What an expression sees of a step that has ended."""
    result = step.result or Outcome()
    outputs = step.artifact if step.status is Status.SUCCEEDED and isinstance(step.artifact, dict) else {}
    return {
        "outputs": outputs,
        "status": _WORDS.get(step.status, step.status.value),
        "failed": step.status is Status.FAILED,
        "skipped": step.status is Status.SKIPPED,
        "exitCode": result.exit_code or 0,
        "stdout": result.stdout or "",
        "stderr": result.stderr or "",
    }


_WORDS = {Status.UPSTREAM_FAILED: "blocked"}


def result_variables(outcome: Outcome) -> dict[str, Any]:
    return {
        "output": outcome.value if isinstance(outcome.value, dict) else {},
        "exitCode": outcome.exit_code or 0,
        "stdout": outcome.stdout or "",
        "stderr": outcome.stderr or "",
    }
