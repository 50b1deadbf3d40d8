"""Files, functions and the scheduler stay small; nothing is left unfinished (design, "Style")."""

from __future__ import annotations

import ast
import re

from tests.architecture.source_tree import layer_of, modules, path_of

FILE_LINES, FUNCTION_LINES, PARAMETERS, SCHEDULER_LINES = 600, 60, 8, 1_200
UNFINISHED = re.compile(r"\b(TODO|FIXME|XXX|HACK|NotImplementedError|NotImplemented)\b")


KNOWN_LINES = {
    (
        "flowstone.drivers.drive",
        "with contextlib.suppress(ValueError, RuntimeError, NotImplementedError):",
    ),  # asyncio raises it where a loop has no signal handlers
}


def functions():
    for module, tree in modules().items():
        for node in ast.walk(tree):
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                yield module, node


def lines_of(module):
    return path_of(module).read_text().count("\n")


def test_files_are_short():
    assert [name for name in modules() if lines_of(name) > FILE_LINES] == []


def test_functions_are_short():
    wrong = [f"{module}.{node.name}" for module, node in functions() if _length(node) > FUNCTION_LINES]
    assert wrong == []


def test_functions_take_few_parameters():
    """`self` is not counted; neither is what a command line declares as options of a verb."""
    wrong = []
    for module, node in functions():
        names = [arg.arg for arg in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)]
        if len([name for name in names if name not in ("self", "cls")]) > PARAMETERS:
            wrong.append(f"{module}.{node.name}")
    assert wrong == []


def test_the_scheduler_is_small():
    assert sum(lines_of(name) for name in modules() if "." in name and layer_of(name) == "scheduler") <= SCHEDULER_LINES


def test_nothing_is_left_unfinished():
    wrong = []
    for name in modules():
        for number, line in enumerate(path_of(name).read_text().splitlines(), 1):
            if UNFINISHED.search(line) and (name, line.strip()) not in KNOWN_LINES:
                wrong.append(f"{name}:{number}: {line.strip()}")
    assert wrong == []


def test_every_module_says_what_it_is_for():
    wrong = [name for name, tree in modules().items() if tree.body and ast.get_docstring(tree) is None]
    assert wrong == []


def test_every_port_says_what_holds():
    """The docstring of a port's method is its contract."""
    wrong = [
        f"{module}.{node.name}"
        for module, node in functions()
        if module.startswith("flowstone.ports") and not node.name.startswith("_") and ast.get_docstring(node) is None
    ]
    assert wrong == []


def _length(node):
    return (node.end_lineno or node.lineno) - node.lineno + 1
