"""The frozen plan as text: canonical JSON, its hash, and a strict, bounded decoder (irVersion 5)."""

from __future__ import annotations

from typing import Any

import msgspec

from flowstone.errors import PlanVersionError
from flowstone.plan.bounds import JSON_DEPTH, PLAN_BYTES
from flowstone.plan.checks.nesting import nesting_problems
from flowstone.plan.checks.structure import problems_of, targets_of
from flowstone.plan.model import IR_VERSION, ChildRule, Plan
from flowstone.values import JsonError, canonical_json, decode_json, depth_of, sha256_hex

DEPTH = JSON_DEPTH * 8
"""Levels of nesting in the JSON of a plan: workflows that nest workflows are in it whole."""


def encode_plan(plan: Plan) -> str:
    """The plan in canonical JSON; equal plans have equal texts. PlanVersionError if it is too large."""
    built: dict[str, Any] = msgspec.to_builtins(plan)
    built["ir_version"] = plan.ir_version
    text = canonical_json(built)
    if len(text.encode("utf-8")) > PLAN_BYTES:
        raise PlanVersionError(
            f"the frozen plan would have {len(text.encode('utf-8'))} bytes; a plan has at most {PLAN_BYTES}",
            code="WORKFLOW_SOURCE_INVALID",
            hint="Move long instructions, schemas or scripts out of the workflow, or split it.",
        )
    if depth_of(built) > DEPTH:
        raise PlanVersionError(f"the frozen plan is nested more than {DEPTH} levels deep")
    return text


def plan_hash(text: str) -> str:
    """The SHA-256 of a plan's canonical text, as hex."""
    return sha256_hex(text)


def decode_plan(text: str, *, check: bool = True) -> Plan:
    """Read a frozen plan. Another version, unknown fields, wrong types and broken rules are refused.

    `check` False leaves the rules out, for a reader that only shows the plan.
    """
    if len(text) > PLAN_BYTES:
        raise PlanVersionError(f"the stored plan has more than {PLAN_BYTES} bytes")
    try:
        built = decode_json(text, whole_floats=False, max_depth=DEPTH)
        version = built.get("ir_version") if isinstance(built, dict) else None
        if version != IR_VERSION:
            raise PlanVersionError(
                f"the run's plan has irVersion {version}; this flowstone reads {IR_VERSION}",
                hint="Start a new run, or use the version of flowstone that started this one.",
            )
        plan = msgspec.convert(built, Plan, strict=True)
        problems = _problems(plan) if check else []
    except (JsonError, msgspec.ValidationError) as error:
        raise PlanVersionError(f"the stored plan is damaged: {error}") from None
    if problems:
        raise PlanVersionError(f"the stored plan is damaged: {problems[0]}")
    return plan


def _problems(plan: Plan) -> list[str]:
    """What is wrong with a plan that was read. The size of a family is bounded where a plan holds it whole."""
    found = [*problems_of(plan), *(f'step "{step}" is not frozen' for step in targets_of(plan))]
    return found or (list(nesting_problems(plan)) if plan.policies.children is ChildRule.BY_HAND else [])
