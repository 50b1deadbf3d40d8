"""Ancestors and cycles."""

from __future__ import annotations

import itertools

import pytest

from flowstone.plan.graph import ancestors, closure, find_cycle
from flowstone.testing.plans import dag, solo


def test_ancestors_are_direct_and_indirect_whatever_the_order():
    plan = dag(solo("d", needs=("b", "c")), solo("a"), solo("b", needs=("a",)), solo("c", needs=("a",)))
    assert ancestors(plan) == {"a": set(), "b": {"a"}, "c": {"a"}, "d": {"a", "b", "c"}}


@pytest.mark.parametrize(
    ("needs", "members"),
    [
        ({"a": []}, set()),
        ({"a": ["a"]}, {"a"}),
        ({"a": ["b"], "b": ["a"]}, {"a", "b"}),
        ({"x": ["a"], "a": ["b"], "b": ["c"], "c": ["a"], "y": []}, {"a", "b", "c"}),
        ({"a": ["b", "c"], "b": ["d"], "c": ["d"], "d": []}, set()),
        ({"a": ["nobody"]}, set()),
    ],
)
def test_a_cycle_is_named_from_its_first_member_to_itself(needs, members):
    cycle = find_cycle(needs)
    assert set(cycle) == members
    if cycle:
        assert cycle[0] == cycle[-1]
        assert all(following in needs[name] for name, following in itertools.pairwise(cycle))


def test_long_chains_are_no_problem():
    chain = {str(n): [str(n - 1)] if n else [] for n in range(3_000)}
    assert find_cycle(chain) == ()
    assert len(closure(chain)["2999"]) == 2_999
