"""The graph of a plan's steps: ancestors of each, and a cycle if there is one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from flowstone.plan.model import Plan


def ancestors(plan: Plan) -> dict[str, frozenset[str]]:
    """For each step the steps that it comes after, directly or not. The plan has no cycle."""
    return closure({step.id: step.needs for step in plan.steps})


def closure(needs: Mapping[str, Iterable[str]]) -> dict[str, frozenset[str]]:
    """The transitive closure of an acyclic relation; names that have no entry are left out."""
    found: dict[str, frozenset[str]] = {}
    for name in _in_order(needs):
        direct = [need for need in needs[name] if need in needs]
        found[name] = frozenset(direct).union(*(found.get(need, frozenset()) for need in direct))
    return found


def find_cycle(needs: Mapping[str, Iterable[str]]) -> tuple[str, ...]:
    """The members of a cycle in order, the first repeated at the end; empty if there is none."""
    done: set[str] = set()
    for start in needs:
        path: list[str] = []
        stack = [(start, iter(tuple(needs[start])))]
        while stack:
            name, rest = stack[-1]
            if name not in done and name not in path:
                path.append(name)
            following = next((n for n in rest if n in needs and n not in done), None)
            if following is None:
                done.add(name)
                stack.pop()
                path = path[: len(stack)]
            elif following in path:
                return (*path[path.index(following) :], following)
            else:
                stack.append((following, iter(tuple(needs[following]))))
    return ()


def _in_order(needs: Mapping[str, Iterable[str]]) -> list[str]:
    """The names, each behind those that it needs."""
    order: list[str] = []
    waiting = {name: {need for need in found if need in needs} for name, found in needs.items()}
    dependents: dict[str, list[str]] = {name: [] for name in needs}
    for name, found in waiting.items():
        for need in found:
            dependents[need].append(name)
    ready = [name for name, found in waiting.items() if not found]
    while ready:
        name = ready.pop()
        order.append(name)
        for dependent in dependents[name]:
            waiting[dependent].discard(name)
            if not waiting[dependent]:
                ready.append(dependent)
    return order
