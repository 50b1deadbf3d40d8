"""Identities of units: an id and an input hash, both functions of the plan, the params and the artifacts.

A unit that succeeded before with the same hash is reused; a fan-out's units are told apart by item.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from flowstone.plan.model import HashRule
from flowstone.run.state import StepState
from flowstone.values import canonical_json, sha256_hex


class Opening(msgspec.Struct):
    """What a step's units share: resolved inputs by reference text, and the items of a fan-out.

    `given` are the values of the target's own inputs. `seen` counts equal items, so that each unit has an
    id of its own; `ids` holds the ids so far. `latest` is the identity that was asked for last, with its index.
    """

    inputs: dict[str, Any]
    given: dict[str, Any] = {}
    items: list[Any] | None = None
    seen: dict[str, int] = {}
    ids: list[str] = []
    spelt: list[str] = []
    hash_head: str | None = None
    hash_tail: str = ""
    context: tuple[tuple[str, str], ...] | None = None
    latest: tuple[int, Identity] | None = None


class Identity(msgspec.Struct, frozen=True):
    unit: str
    hash: str
    item: str | None


def identify(step: StepState, index: int, params: Mapping[str, Any], rule: HashRule | None) -> Identity:
    """The id and input hash of a unit; units of a fan-out are identified in item order.

    Without a `rule` nothing is reused and the hash is empty.
    """
    opening: Opening = step.opening
    if opening.latest is not None and opening.latest[0] == index:
        return opening.latest[1]
    unit, item = _unit_id(step, opening, index)
    digest = ""
    if rule is not None:
        if opening.hash_head is None:
            _prepare_hash(step, opening, params, rule)
        digest = sha256_hex(f"{opening.hash_head}{item or 'null'}{opening.hash_tail}")
    identity = Identity(unit, digest, item)
    opening.latest = (index, identity)
    return identity


def _unit_id(step: StepState, opening: Opening, index: int) -> tuple[str, str | None]:
    if opening.items is None:
        return f"{step.id}:solo{_loop_suffix(step)}", None
    while len(opening.ids) <= index:
        spelt = canonical_json(opening.items[len(opening.ids)])
        base = f"{step.id}.unit:{sha256_hex(spelt)}"
        times = opening.seen[base] = opening.seen.get(base, 0) + 1
        opening.ids.append(f"{base}{'' if times == 1 else f'#{times}'}{_loop_suffix(step)}")
        opening.spelt.append(spelt)
    return opening.ids[index], opening.spelt[index]


def _loop_suffix(step: StepState) -> str:
    """Units of a further execution have ids of their own, if they can answer feedback at all."""
    gate = step.plan.gate
    return f"~l{step.loop}" if step.loop > 1 and (gate is None or gate.loops) else ""


def _prepare_hash(step: StepState, opening: Opening, params: Mapping[str, Any], rule: HashRule) -> None:
    """Spell what all units of a step share around the item, once (akm facts 9.5)."""
    unit = step.plan.unit
    assert unit is not None
    spec: dict[str, Any] = msgspec.to_builtins(unit.spec)
    before = {
        "environment": spec.pop("env", []),
        "frozenTarget": {**spec, "timeoutMs": None},
        "hashVersion": rule.version,
        "inputs": [{"reference": key, "value": value} for key, value in opening.inputs.items()],
        "isolation": unit.isolation,
    }
    after = {
        "nodeId": step.id if opening.items is None else f"{step.id}.unit",
        "params": params,
        "role": "unit",
        "schema": unit.schema if unit.has_schema else None,
        "stepId": step.id,
        "template": step.plan.instructions,
    }
    if opening.given:
        after["taskInputs"] = opening.given
    if step.feedback is not None:
        before["gateFeedback"] = {"feedback": step.feedback.feedback, "missing": list(step.feedback.missing)}
    opening.hash_head = f'{rule.prefix}{canonical_json(before)[:-1]},"item":'
    opening.hash_tail = f",{canonical_json(after)[1:]}"
