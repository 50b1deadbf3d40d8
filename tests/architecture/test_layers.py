"""Imports go down the table of docs/explanation/architecture.md, which is read from there."""

from __future__ import annotations

import re

import pytest

from flowstone.plan.graph import find_cycle
from tests.architecture.source_tree import ROOT, imports_of, layer_of, modules

PAGE = ROOT / "docs" / "explanation" / "architecture.md"
WORLD = ("os", "pathlib", "subprocess", "socket", "asyncio", "time", "random", "uuid", "sqlite3", "logging")
PURE = ("plan", "run", "expr", "views", "scheduler")
COMMANDS = ("cli", "web")
PRODUCT = [name for name in modules() if "." in name]


def table() -> dict[str, set[str]]:
    """For each layer of the page the layers that it may import, itself included."""
    rows = re.findall(r"^\| ([0-9]|–) \| ([^|]+) \| ([^|]+) \|$", PAGE.read_text(), re.MULTILINE)
    ranks: dict[str, set[str]] = {}
    for rank, layers, _ in rows:
        ranks.setdefault(rank, set()).update(layers.strip().split(", "))
    allowed: dict[str, set[str]] = {}
    for _, layers, targets in rows:
        reach: set[str] = set()
        for target in targets.strip().split(", "):
            if span := re.fullmatch(r"(\d)–(\d)", target):
                reach.update(*(ranks[str(rank)] for rank in range(int(span[1]), int(span[2]) + 1)))
            else:
                reach |= ranks.get(target, {target})
        for layer in layers.strip().split(", "):
            allowed[layer] = reach | {layer}
    return allowed


def test_the_page_has_the_table():
    allowed = table()
    assert len(allowed) >= 20
    assert allowed["plan"] == {"errors", "diagnostics", "values", "redaction", "source", "expr", "plan"}
    assert "testing" not in set().union(*(reach for layer, reach in allowed.items() if layer != "testing"))


def test_every_part_of_the_source_is_in_the_table():
    assert {layer_of(name) for name in PRODUCT} - set(table()) - {"schemas"} == set()


def test_imports_go_down():
    allowed = table()
    wrong = [
        f"{module} imports {target}"
        for module in PRODUCT
        for target in imports_of(module, typed=layer_of(module) not in COMMANDS)
        if target.startswith("flowstone.") and layer_of(target) not in allowed[layer_of(module)]
    ]
    assert wrong == []


def test_no_module_imports_itself_by_way_of_others():
    ours = {module: [t for t in imports_of(module) if t in modules() and t != module] for module in modules()}
    assert find_cycle(ours) == ()


@pytest.mark.parametrize("package", PURE)
def test_pure_packages_touch_nothing_of_the_world(package):
    wrong = [
        f"{module} imports {target}"
        for module in PRODUCT
        if layer_of(module) == package
        for target in imports_of(module)
        if target.split(".")[0] in WORLD
    ]
    assert wrong == []
