"""Progress of a run as text: what each event means to whoever watches, and the account at the end.

Pure. The texts may hold whatever steps and commands have said; the command line neutralises them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import msgspec

from flowstone.run.events import AttemptEnded, AttemptStarted, Event, RunInterrupted, Status, StepClosed, StepOpened
from flowstone.run.state import State, StepState
from flowstone.values import Json, canonical_json
from flowstone.views.text import short_unit, spell_count, spell_part
from flowstone.views.words import RUNNING

Word = Callable[[str], str]
"""A language's word for a core status (`Dialect.word`)."""

QUIET_MS = 5_000
"""How long a wide fan-out goes on before the next line about it."""


class StepLine(msgspec.Struct, frozen=True):
    """A step in a list: `took_ms` None while it has not ended, `units` only for fan-outs."""

    step: str
    status: Status
    word: str
    took_ms: int | None = None
    units: str = ""
    error: str | None = None


def plain_progress(state: State, event: Event, word: Word, told: dict[str, int]) -> Iterator[str]:
    """The lines that an event is worth in a log.

    `told` keeps when each fan-out was last counted; a step that opens is told with its first unit, as
    it may wait for a free slot until then.
    """
    match event:
        case StepOpened(step=step):
            told.pop(step, None)
        case AttemptStarted(step=step) if step not in told and event.index >= 0:
            told[step] = event.at
            yield _started_line(state.steps[step])
        case AttemptEnded() if not event.outcome.ok:
            yield f"{short_unit(event.unit)}: {short_unit(event.outcome.error or str(event.outcome.reason)).rstrip()}"
        case AttemptEnded(step=step) if state.steps[step].fans_out:
            if event.at - told.setdefault(step, event.at) >= QUIET_MS:
                told[step] = event.at
                yield f"{step}: {units_text(state.steps[step])}"
        case StepClosed(step=step):
            yield _closed_line(step_line(state.steps[step], word))
        case RunInterrupted(cause=cause):
            yield f"stopped: {cause}"


def orun_progress(event: Event, word: Word, front: str = "") -> Iterator[str]:
    """The lines that orun documents for an event (orun facts 2); `front` is put before the name of a step."""
    match event:
        case AttemptStarted(step=step, number=0, index=0):  # an open step may still wait for a free slot
            yield f"  ▸ {front}{step}"
        case StepClosed(step=step, status=status, error=error):
            yield f"  - {front}{step}: {word(status.value)}"
            if error:
                first, *more = error.splitlines()
                yield f"      ✕ {first}"
                yield from (f"        {line}" for line in more)


def orun_end(file: str, state: State, word: Word, noun: str = "workflow") -> Iterator[str]:
    """The last lines of an orun run: its status and id, and its outputs in declared order."""
    yield f"{noun} {file}: {word(state.status.value)} (exec {state.run_id})"
    outputs = state.outputs if isinstance(state.outputs, dict) else {}
    for output in state.plan.outputs:
        if output.name in outputs:
            yield f"  {output.name} = {shown(outputs[output.name])}"


def step_line(step: StepState, word: Word, now: int | None = None) -> StepLine:
    """A step as it stands; with `now` the time of an open one counts up to it."""
    end = step.closed_at if step.closed_at is not None else now
    return StepLine(
        step=step.id,
        status=step.status,
        word=RUNNING if step.status is Status.OPEN else word(step.status.value),
        took_ms=None if step.opened_at is None or end is None else end - step.opened_at,
        units=units_text(step) if step.fans_out and step.count else "",
        error=None if step.error is None else short_unit(step.error),
    )


def run_took_ms(state: State) -> int:
    """How long a run has taken, up to its last event."""
    end = state.updated_at if state.closed_at is None else state.closed_at
    return 0 if state.started_at is None else end - state.started_at


def units_text(step: StepState) -> str:
    """How far a fan-out is: `120/1,000 units, 4 running, 3 failed`."""
    # What an earlier drive ended is counted by its attempts: a replay closes no units.
    ended = step.closed or (len(step.final_attempts()) if step.closed_at is not None else 0)
    parts = [spell_part(ended, step.count, "unit")]
    parts += [f"{step.running:,} running"] if step.running else []
    parts += [f"{step.failures:,} failed"] if step.failures else []
    return ", ".join(parts)


def elapsed_text(ms: int) -> str:
    """A span of time for people: `0.3s`, `42s`, `3m04s`, `2h05m`."""
    seconds = max(ms, 0) / 1000
    if seconds < 9.95:
        return f"{seconds:.1f}s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes == 0:
        return f"{rest}s"
    hours, minutes = divmod(minutes, 60)
    return f"{hours}h{minutes:02}m" if hours else f"{minutes}m{rest:02}s"


def shown(value: Json) -> str:
    """A value for people: a text as it is, anything else as JSON."""
    return value if isinstance(value, str) else canonical_json(value)


def _started_line(step: StepState) -> str:
    units = f", {spell_count(step.count, 'unit')}" if step.fans_out else ""
    return f"{step.id}: started{units}{f', loop {step.loop}' if step.loop > 1 else ''}"


def _closed_line(line: StepLine) -> str:
    took = f" in {elapsed_text(line.took_ms)}" if line.took_ms is not None else ""
    return f"{line.step}: {line.word}{took}{f': {line.error}' if line.error else ''}"
