"""Below `formats/` no name tells a language: whatever they do differently is data of the plan."""

from __future__ import annotations

import ast
import re

from tests.architecture.source_tree import layer_of, modules

BELOW = ("plan", "run", "scheduler", "dispatchers", "drivers", "expr", "ports", "freeze")
WORD = re.compile(r"(?i)(?<![a-z])(akm|orun)(?![a-z])")
EXCEPTIONS = {
    "flowstone.dispatchers.process.result: [__akm_exec_output_truncated__]": (
        "the marker that the reference documents for output over the limit; the plan chooses whether it is used"
    ),
    "flowstone.dispatchers.process.worktree: akm-worktrees": (
        "the documented folder of worktrees below the system's temporary one"
    ),
}
"""Module and text → why it may stand there."""


def test_no_name_and_no_text_tells_a_language():
    wrong = []
    for module, tree in modules().items():
        if "." in module and layer_of(module) in BELOW:
            wrong += [f"{module}: {text}" for text in _texts(tree) if WORD.search(text)]
    assert [found for found in wrong if found not in EXCEPTIONS] == []
    assert set(EXCEPTIONS) <= set(wrong), "an exception that is none any more"


def _texts(tree: ast.Module):
    """Every name and every text of a module that is no docstring."""
    prose = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        match node:
            case ast.Name(id=name) | ast.Attribute(attr=name) | ast.arg(arg=name) | ast.alias(name=name):
                yield name
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                yield name
            case ast.keyword(arg=str() as name):
                yield name
            case ast.Constant(value=str() as text) if id(node) not in prose:
                yield text
            case _:
                pass
