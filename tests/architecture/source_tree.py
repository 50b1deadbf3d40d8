"""The source of the product as syntax trees, with its imports: what the architecture tests look at."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "flowstone"


@cache
def modules() -> dict[str, ast.Module]:
    """Every module of the product by its dotted name."""
    return {_dotted(path): ast.parse(path.read_text()) for path in sorted(PACKAGE.rglob("*.py"))}


def path_of(module: str) -> Path:
    plain = ROOT / "src" / (module.replace(".", "/") + ".py")
    return plain if plain.exists() else ROOT / "src" / module.replace(".", "/") / "__init__.py"


@cache
def imports_of(module: str, *, typed: bool = True) -> tuple[str, ...]:
    """Everything that a module imports anywhere, as dotted names of modules.

    `typed` False leaves out what only a type checker imports.
    """
    found: list[str] = []
    tree = modules()[module]
    unseen = set() if typed else {id(node) for guard in ast.walk(tree) if _guards(guard) for node in ast.walk(guard)}
    for node in ast.walk(tree):
        if id(node) in unseen:
            continue
        if isinstance(node, ast.Import):
            found += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{module}: relative import"
            assert node.module is not None
            whole = [f"{node.module}.{alias.name}" for alias in node.names]
            found += [name if name in modules() else node.module for name in whole]
    return tuple(dict.fromkeys(found))


def layer_of(module: str) -> str:
    """`flowstone.plan.model` belongs to `plan`, `flowstone.api` to `api`."""
    return module.split(".")[1]


def _guards(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"


def _dotted(path: Path) -> str:
    parts = path.relative_to(ROOT / "src").with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
