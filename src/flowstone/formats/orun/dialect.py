"""How orun names runs, takes inputs and connections, and words its files and statuses."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from flowstone.errors import InputError
from flowstone.formats.orun import grammar
from flowstone.formats.orun.inputs import resolve_inputs
from flowstone.plan.model import Plan
from flowstone.ports.dialect import Given, Resolved, StoppedChild
from flowstone.run.events import ENDED, DriverStarted, Event, RunClosed, RunStatus, Status, StepClosed
from flowstone.run.outcome import Outcome
from flowstone.run.state import Attempt, State, StepState
from flowstone.values import Json, canonical_json, pretty_json

CONNECTION_FIELDS = {"http.bearer": ("bearerToken", "token")}
_WORDS = {
    Status.OPEN.value: "running",
    Status.UPSTREAM_FAILED.value: "blocked",
    Status.HELD.value: "blocked",
    Status.CANCELLED.value: "failed",
}


class OrunDialect:
    """The Dialect port for orun."""

    name = "orun"

    @property
    def projection(self) -> OrunProjection:
        return OrunProjection()

    def run_id(self, plan: Plan, fresh: str, now_ns: int) -> str:
        return f"{plan.name}-{now_ns}"

    def resolve(self, plan: Plan, given: Given) -> Resolved:
        return _resolved(plan, given, None)

    def resume(self, plan: Plan, given: Given, stored: Mapping[str, Any]) -> Resolved:
        return _resolved(plan, given, stored)

    def connections(self, plan: Plan, given: Given) -> dict[str, Any]:
        types = {connection.name: connection.type for connection in plan.connections}
        complaints = [text for name, fields in given.connections.items() for text in _grant(name, fields, types)]
        for place, names in _users(plan):
            complaints += [_missing(place, name, types[name]) for name in names if name not in given.connections]
        if complaints:
            raise InputError("\n".join(complaints))
        return {name: dict(fields) for name, fields in given.connections.items()}

    def bare_exports(self, run_id: str) -> dict[str, Any]:
        return {}

    def stopped(self, child: StoppedChild) -> str:
        return f"workflow {child.ref}: {child.error or 'it stopped'}"

    def word(self, status: str) -> str:
        return word_of(status)

    def code(self, codes: Sequence[str]) -> str:
        return "WORKFLOW_SOURCE_INVALID"


def word_of(status: str) -> str:
    """orun's own word for a core status."""
    return _WORDS.get(status, status)


class OrunProjection:
    """The documented files of `.orun/wfruns/<execId>/` (reference, "Execution and run state")."""

    def files(self, state: State, events: Sequence[Event]) -> Iterator[tuple[str, bytes]]:
        whole = not events
        if whole or any(isinstance(event, DriverStarted) for event in events):
            yield "metadata.json", spelt(_metadata(state))
        closed = dict.fromkeys(event.step for event in events if isinstance(event, StepClosed))
        for step in state.order if whole else [state.steps[name] for name in closed]:
            if step.status in ENDED:
                yield f"steps/{step.id}.json", spelt(step_json(step))
        if state.status in _CLOSED and (whole or any(isinstance(event, RunClosed) for event in events)):
            yield "result.json", spelt(_result(state))


def step_json(step: StepState) -> dict[str, Json]:
    """A step's documented state, and `notes` such as that output was cut; what is empty or zero is left out."""
    result = step.result or Outcome()
    attempts = step.final_attempts()
    outputs = step.artifact if step.status is Status.SUCCEEDED and isinstance(step.artifact, dict) else {}
    fields: dict[str, Json] = {
        "name": step.id,
        "status": word_of(step.status.value),
        "outputs": outputs,
        "exitCode": result.exit_code,
        "stdout": result.stdout,
        "stderr": result.stderr,
        "error": step.error,
        "attempts": attempts[-1].number + 1 if attempts else 0,
        "notes": [note for attempt in attempts for note in _notes(attempt)],
    }
    return {name: value for name, value in fields.items() if value}


def _notes(attempt: Attempt) -> list[str]:
    warnings = attempt.outcome.warnings if attempt.outcome is not None else ()
    return [text.removeprefix(f'unit "{attempt.unit}": ') for text in warnings]


def _resolved(plan: Plan, given: Given, stored: Mapping[str, Any] | None) -> Resolved:
    bare = [f"--set {name} needs a value: {name}=..." for name, text in given.texts if text is None]
    if bare:
        raise InputError("\n".join(bare))
    texts = {name: text for name, text in given.texts if text is not None}
    values = resolve_inputs(plan.params, texts, given.values, stored)
    hidden = {param.name for param in plan.params if param.secret}
    secrets = [form for name in values if name in hidden for form in _forms(values[name])]
    kept = {name: value for name, value in values.items() if name not in hidden}
    return Resolved(values, kept, tuple(dict.fromkeys(secrets)))


def _forms(value: Json) -> Iterator[str]:
    """The texts by which a secret value could show: its own, and those of what it holds."""
    match value:
        case str():
            yield value
        case bool() | None:
            return
        case list():
            yield canonical_json(value)
            for item in value:
                yield from _forms(item)
        case dict():
            yield canonical_json(value)
            for item in value.values():
                yield from _forms(item)
        case _:
            yield canonical_json(value)


def _users(plan: Plan) -> Iterator[tuple[str, tuple[str, ...]]]:
    """What uses connections, as errors name it, with the names of those."""
    for step in plan.steps:
        yield f"step {step.id}", step.connections
    for output in plan.outputs:
        yield f"outputs.{output.name}", output.connections


def _missing(place: str, name: str, kind: str) -> str:
    field = CONNECTION_FIELDS[kind][0]
    return f'{place}: connection "{name}" was not granted (--connection {name}.{field}=...)'


def _grant(name: str, fields: Mapping[str, str], types: Mapping[str, str]) -> Iterator[str]:
    if name not in types:
        yield f'connection grant "{name}": workflow declares no such connection'
        return
    known = CONNECTION_FIELDS[types[name]]
    for field in fields:
        if field not in known:
            yield f'connection grant "{name}": {types[name]} has no field "{field}" ({", ".join(known)})'
    if not any(fields.get(field) for field in known):
        yield f'connection grant "{name}": {types[name]} needs {" or ".join(known)}'


def _metadata(state: State) -> dict[str, Json]:
    source, started = state.plan.source, state.started_at
    return {
        "workflow": state.plan.name,
        "digest": f"sha256:{source.digest}" if source is not None else "",
        "startedAt": rfc3339(started) if started is not None else "",
    }


def _result(state: State) -> dict[str, Json]:
    succeeded = state.status is RunStatus.SUCCEEDED
    outputs = state.outputs if succeeded and state.outputs is not None else {}
    return {"status": "succeeded" if succeeded else "failed", "outputs": outputs}


def rfc3339(milliseconds: int) -> str:
    moment = datetime.fromtimestamp(milliseconds // 1000, UTC)
    return f"{moment:%Y-%m-%dT%H:%M:%S}.{milliseconds % 1000:03d}Z"


def spelt(value: Json) -> bytes:
    return (pretty_json(value) + "\n").encode("utf-8", "replace")


_CLOSED = frozenset({RunStatus.SUCCEEDED, RunStatus.FAILED})
assert set(CONNECTION_FIELDS) == set(grammar.CONNECTION_TYPES)
