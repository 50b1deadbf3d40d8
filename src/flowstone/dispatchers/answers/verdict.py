"""The text of a judge → its verdict: only one whole JSON object with a boolean `complete` is one."""

from __future__ import annotations

from typing import Any

from flowstone.dispatchers.answers.extraction import BROKEN, NoJson, values_in, whole_value
from flowstone.values import Json, clip, type_name

NO_FEEDBACK = "The judge gave no feedback."


class MalformedVerdict(ValueError):
    """The answer is no verdict; the message says why."""


def verdict_of(text: str) -> dict[str, Any]:
    """`{complete, missing, feedback}` (akm facts 15, decision 11); MalformedVerdict fails closed."""
    value = _object_in(text)
    complete = value.get("complete")
    if not isinstance(complete, bool):
        what = "is missing" if "complete" not in value else f"must be true or false, got {type_name(complete)}"
        raise MalformedVerdict(f'"complete" {what}')
    return {"complete": complete, "missing": _texts(value.get("missing")), "feedback": _feedback(value)}


def _object_in(text: str) -> dict[str, Json]:
    """The text as an object, or the one object in its prose."""
    try:
        value = whole_value(text)
    except NoJson as error:
        found = list(values_in(text))
        if len(found) != 1 or found[0] is BROKEN:
            shown = clip(" ".join(text.split()), 200)
            raise MalformedVerdict(f'it holds no single JSON object ({error}): "{shown}"') from None
        value = found[0]
    if not isinstance(value, dict):
        raise MalformedVerdict(f"it is {type_name(value)}, not a JSON object")
    return value


def _texts(value: Json) -> list[str]:
    items = value if isinstance(value, list) else []
    return [item.strip() for item in items if isinstance(item, str) and item.strip()]


def _feedback(value: dict[str, Json]) -> str:
    feedback = value.get("feedback")
    text = feedback.strip() if isinstance(feedback, str) else ""
    return text or NO_FEEDBACK
