"""How a run of a job is named and shown: as orun's workflows are, with a seal over what ran."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from flowstone.formats.orun.dialect import OrunDialect, OrunProjection, rfc3339, spelt, word_of
from flowstone.formats.orun_job.lower import DIALECT
from flowstone.plan.codec import encode_plan, plan_hash
from flowstone.plan.units import ApprovalSpec, ChildSpec
from flowstone.run.events import ENDED, Event, RunClosed, RunStatus, Status
from flowstone.run.state import State, StepState
from flowstone.values import Json, canonical_json, sha256_hex


class JobDialect(OrunDialect):
    """The Dialect port for jobs."""

    name = DIALECT

    @property
    def projection(self) -> JobProjection:
        return JobProjection()


class JobProjection(OrunProjection):
    """The files of a workflow's run, and `seal.json` once the job has ended."""

    def files(self, state: State, events: Sequence[Event]) -> Iterator[tuple[str, bytes]]:
        yield from super().files(state, events)
        closed = not events or any(isinstance(event, RunClosed) for event in events)
        if closed and state.status in (RunStatus.SUCCEEDED, RunStatus.FAILED):
            yield "seal.json", spelt(seal(state))


def seal(state: State) -> dict[str, Json]:
    """What ran, from which files, who approved it, and the digest of all that (`seal`)."""
    plan = state.plan
    sealed: dict[str, Json] = {
        "run": state.run_id,
        "job": plan.name,
        "planDigest": f"sha256:{plan_hash(encode_plan(plan))}",
        "pinned": [{"path": file.path, "digest": f"sha256:{file.digest}"} for file in plan.read_set],
        "status": state.status.value,
        "startedAt": rfc3339(state.started_at or 0),
        "endedAt": rfc3339(state.updated_at),
        "steps": [_step(step) for step in state.order if step.status in ENDED],
    }
    return {**sealed, "seal": f"sha256:{sha256_hex(canonical_json(sealed))}"}


def _step(step: StepState) -> dict[str, Json]:
    fields: dict[str, Json] = {"name": step.id, "status": word_of(step.status.value)}
    spec = step.plan.unit.spec if step.plan.unit is not None else None
    result = step.result
    if isinstance(spec, ChildSpec) and result is not None:
        fields |= {"workflow": spec.ref, "digest": f"sha256:{spec.digest}", "run": result.child_run}
    if isinstance(spec, ApprovalSpec) and result is not None:
        fields["decision"] = result.value
    if step.status is Status.SUCCEEDED:
        fields["outputs"] = f"sha256:{sha256_hex(canonical_json(step.artifact))}"
    return fields
