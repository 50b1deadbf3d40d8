"""A plan without the secrets that its texts hold, for a store whose plans are only shown.

Only what an author wrote as text is changed: arguments, values, expressions and prose. Names and
structure stay, so that the plan can still be decoded and shown.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from flowstone.plan.model import Plan

TEXTS = frozenset(
    {"argv", "arguments", "content", "cwd", "default", "description", "duration", "instructions", "parts"}
    | {"preamble", "source", "until", "value", "values", "when"}
)
_STRUCTURE = frozenset({"type", "reads", "names", "name", "root", "path", "digest"})


def scrubbed(plan: Plan, redact: Callable[[str], str]) -> Plan:
    """The same plan with every authored text redacted."""
    return msgspec.convert(_walk(msgspec.to_builtins(plan), redact, inside=False), Plan, strict=False)


def _walk(node: Any, redact: Callable[[str], str], *, inside: bool) -> Any:
    if isinstance(node, dict):
        return {
            key: value if key in _STRUCTURE else _walk(value, redact, inside=inside or key in TEXTS)
            for key, value in node.items()
        }
    if isinstance(node, (list, tuple)):
        return [_walk(member, redact, inside=inside) for member in node]
    return redact(node) if inside and isinstance(node, str) else node
