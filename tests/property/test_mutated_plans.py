"""A stored plan that was altered is refused, or it runs to an end; it never breaks the driver."""

from __future__ import annotations

import copy
import random

import pytest

from flowstone.errors import PlanVersionError
from flowstone.plan.codec import decode_plan, encode_plan
from flowstone.testing.leaping_loop import Deadlock
from flowstone.testing.scripted_dispatcher import Script
from flowstone.values import canonical_json, decode_json
from tests.crash.scenarios import SCENARIOS
from tests.driving import BAD, Bench

STRANGE = (
    None,
    True,
    False,
    0,
    -1,
    1.5,
    10**30,
    "",
    "a",
    "\ud800",
    "ä\0",
    [],
    {},
    [None],
    {"type": "x"},
    [[]],
    "steps.a.output",
)


def mutated(value, chance):
    """A copy of a JSON value with one to three nodes replaced, removed, repeated or exchanged."""
    changed = copy.deepcopy(value)
    for _ in range(chance.randint(1, 3)):
        places = list(_places(changed))
        holder, key = chance.choice(places)
        match chance.randint(0, 5):
            case 0:
                del holder[key]
            case 1 if isinstance(holder, list):
                holder.append(copy.deepcopy(holder[key]))
            case 2:
                other, other_key = chance.choice(places)
                holder[key] = copy.deepcopy(other[other_key]) if other_key in _keys(other) else None
            case 3 if isinstance(holder, dict):
                holder["extra"] = 1
            case _:
                holder[key] = copy.deepcopy(chance.choice(STRANGE))
        if not list(_places(changed)):
            break
    return changed


def check(text, script, params):
    """Decode a text; when that goes, drive it."""
    try:
        plan = decode_plan(text)
    except PlanVersionError:
        return False
    bench = Bench(plan, script, params)
    try:
        bench.drive()
    except Deadlock as error:
        raise AssertionError(f"the driver waits for ever: {text}") from error
    return True


@pytest.mark.parametrize("scenario", [name for name in SCENARIOS if "large" not in name])
def test_mutated_plans_are_refused_or_run(scenario):
    plan, script, params = SCENARIOS[scenario]()
    built = decode_json(encode_plan(plan), whole_floats=False)
    chance = random.Random(scenario)
    refused = 0
    for _ in range(300):
        try:
            text = canonical_json(mutated(built, chance))
        except ValueError:
            continue
        refused += not check(text, script, params)
    assert refused > 60


@pytest.mark.parametrize("count", [63, 200, 5_000, 100_000])
@pytest.mark.parametrize("ends", ["[]", "{}"])
def test_deep_nesting_is_refused(count, ends):
    text = '{"ir_version":5,"steps":' + ends[0] * count + ends[1] * count + "}"
    with pytest.raises(PlanVersionError):
        decode_plan(text)


def test_deep_expressions_are_refused():
    plan, _, _ = SCENARIOS["a_dag_with_poll"]()
    built = decode_json(encode_plan(plan), whole_floats=False)
    value = {"type": "literal", "value": 1}
    for _ in range(400):
        value = {"type": "items", "members": [value]}
    built["outputs"] = [{"name": "o", "value": value}]
    with pytest.raises(PlanVersionError):
        decode_plan(canonical_json(built))


def test_random_texts_are_refused():
    chance = random.Random(1)
    text = encode_plan(SCENARIOS["a_route"]()[0])
    for _ in range(300):
        at = chance.randrange(len(text))
        cut = (
            text[:at]
            + chance.choice(["", "x", '"', "{", "\0", "9" * 500, "[" * 99])
            + text[at + chance.randint(0, 4) :]
        )
        check(cut, Script().on("a", BAD), {})


def _keys(holder):
    return holder if isinstance(holder, dict) else range(len(holder))


def _places(value):
    if isinstance(value, dict):
        for key, inner in value.items():
            yield value, key
            yield from _places(inner)
    elif isinstance(value, list):
        for key, inner in enumerate(value):
            yield value, key
            yield from _places(inner)
