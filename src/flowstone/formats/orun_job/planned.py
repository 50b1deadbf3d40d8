"""A frozen job ↔ the text of its plan file: canonical, readable, and refused when anything in it was altered.

The plan file holds the one plan model as it stands, and in front of it what people look for: which
files are pinned, by path and digest.
"""

from __future__ import annotations

from typing import Any

import msgspec

from flowstone.errors import PlanVersionError
from flowstone.formats.orun.grammar import API_VERSION
from flowstone.formats.orun_job.grammar import PLAN_KIND
from flowstone.formats.orun_job.lower import DIALECT
from flowstone.plan.codec import decode_plan, encode_plan, plan_hash
from flowstone.plan.model import Plan, SourceFile
from flowstone.values import Json, JsonError, canonical_json, decode_json, pretty_json

KEYS = ("apiVersion", "kind", "job", "workflows", "planDigest", "plan")


class Planned(msgspec.Struct, frozen=True):
    """A plan file that is whole: `job` is the path of the job file, from the folder of the plan file.

    `text` is the canonical JSON of the plan and `digest` its SHA-256.
    """

    job: str
    plan: Plan
    text: str
    digest: str


def encode(plan: Plan, job: str) -> str:
    """The text of the plan file of a frozen job; `job` is the job file's path, from its folder."""
    text = encode_plan(plan)
    head = _head(plan, job)
    return pretty_json({**head, "planDigest": f"sha256:{plan_hash(text)}", "plan": decode_json(text)}) + "\n"


def decode(text: str) -> Planned:
    """The plan in a file's text; PlanVersionError says what is wrong with it."""
    built = _document(text)
    plan_text = canonical_json(built["plan"])
    plan = decode_plan(plan_text)
    digest = plan_hash(plan_text)
    if built["planDigest"] != f"sha256:{digest}":
        raise _altered(f"its plan has the digest sha256:{digest}, not {built['planDigest']}")
    job = built["job"].get("path") if isinstance(built["job"], dict) else None
    if plan.dialect != DIALECT or plan.source is None or not isinstance(job, str):
        raise _altered("its plan is not that of a job")
    for key, value in _head(plan, job).items():
        if built[key] != value:
            raise _altered(f'"{key}" does not say what its plan says')
    return Planned(job, plan, plan_text, digest)


def _head(plan: Plan, job: str) -> dict[str, Json]:
    assert plan.source is not None
    return {
        "apiVersion": API_VERSION,
        "kind": PLAN_KIND,
        "job": {"name": plan.name, "path": job, "digest": f"sha256:{plan.source.digest}"},
        "workflows": [_pin(file) for file in plan.read_set[1:]],
    }


def _pin(file: SourceFile) -> dict[str, Json]:
    return {"path": file.path, "digest": f"sha256:{file.digest}"}


def _document(text: str) -> dict[str, Any]:
    try:
        built = decode_json(text, whole_floats=False)
    except JsonError as error:
        raise PlanVersionError(f"not a plan file: {error}") from None
    kind = (built.get("apiVersion"), built.get("kind")) if isinstance(built, dict) else (None, None)
    if not isinstance(built, dict) or kind != (API_VERSION, PLAN_KIND):
        wanted = f"apiVersion {API_VERSION} kind {PLAN_KIND}"
        raise PlanVersionError(f'not a plan file: want {wanted}, got "{kind[0] or ""}" "{kind[1] or ""}"')
    if set(built) != set(KEYS):
        wrong = sorted(set(built) ^ set(KEYS))
        raise _altered(f"its keys are not those of a plan file ({', '.join(wrong)})")
    return built


def _altered(why: str) -> PlanVersionError:
    return PlanVersionError(f"the plan file was altered: {why}", code="WORKFLOW_SOURCE_CHANGED")
