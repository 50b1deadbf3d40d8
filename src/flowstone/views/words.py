"""Words: views show statuses in a language's own words, which its dialect gives them."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from flowstone.run.events import Status

Word: TypeAlias = Callable[[str], str]
"""From a core status of a run, step or unit to the language's word for it."""

RUNNING = "running"
"""What an open step is called wherever no reference demands another word."""


def plain_word(status: str) -> str:
    """The word that every view in no language's own words has for a core status: text, JSON and page."""
    return RUNNING if status == Status.OPEN else str(status)
