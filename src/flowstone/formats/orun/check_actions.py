"""The `with:` of a built-in action against the action's schema (reference, "Built-in actions")."""

from __future__ import annotations

from flowstone.diagnostics import Report
from flowstone.expr.duration import parse_go_duration
from flowstone.expr.templates import OPEN
from flowstone.formats.orun import grammar
from flowstone.formats.orun.document import Step
from flowstone.source.cursor import describe, suggest
from flowstone.source.tree import Mapping, Node, Scalar


def check_action(step: Step, action: Scalar, report: Report) -> None:
    """Report an unknown action, unknown or missing arguments, and literal values that do not fit.

    A text with `{{ }}` is judged when it has been filled in.
    """
    known = grammar.ACTIONS.get(action.text)
    if known is None:
        names = ", ".join(sorted(grammar.ACTIONS))
        message = f'{step.label}: unknown action "{action.text}" (built-ins: {names})'
        report.error("unknown-action", message, action.place, suggest(action.text, tuple(grammar.ACTIONS)))
        return
    label = f"{step.label}: {action.text}"
    for entry in step.arguments:
        if entry.name not in known:
            message = f"{label}: unknown with.{entry.name} (it takes {', '.join(known)})"
            report.error("unknown-argument", message, entry.key.place, suggest(entry.name, known))
            continue
        complaint = None if _is_template(entry.value) else _complaint(entry.name, entry.value)
        if complaint is not None:
            report.error("invalid-argument", f"{label}: with.{entry.name} {complaint}", entry.value.place)
    if not any(entry.name == known[0] and not _is_null(entry.value) for entry in step.arguments):
        place = step.place_of("with") if step.arguments else action.place
        report.error("missing-argument", f"{label}: with.{known[0]} is required", place)


def _complaint(name: str, value: Node) -> str | None:
    """What is wrong with a literal argument; None for nothing."""
    if _is_null(value):
        return None
    match name:
        case "url" | "source" | "method":
            if not isinstance(value, Scalar):
                return f"must be a text, got {describe(value)}"
            return None if value.text.strip() else "is required" if name != "method" else "must not be empty"
        case "headers":
            return _headers(value)
        case "duration":
            return _duration(value)
        case _:
            return None


def _headers(value: Node) -> str | None:
    if not isinstance(value, Mapping):
        return f"must be a mapping of names to texts, got {describe(value)}"
    for entry in value.entries:
        if not isinstance(entry.value, Scalar) or entry.value.value is None:
            return f"must be a mapping of names to texts, but {entry.name} is {describe(entry.value)}"
    return None


def _duration(value: Node) -> str | None:
    if not isinstance(value, Scalar):
        return f"must be a duration such as 30s, got {describe(value)}"
    try:
        length = parse_go_duration(value.text)
    except ValueError as error:
        return f"is no duration: {error}"
    if length < 0:
        return f'must not be negative, got "{value.text}"'
    return None if length <= grammar.LONGEST_MS * 1_000_000 else "is longer than ten years"


def _is_template(value: Node) -> bool:
    return isinstance(value, Scalar) and isinstance(value.value, str) and OPEN in value.text


def _is_null(value: Node) -> bool:
    return isinstance(value, Scalar) and value.value is None
