"""Words: views show statuses in a language's own words, which its dialect gives them."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

Word: TypeAlias = Callable[[str], str]
"""From a core status of a run, step or unit to the language's word for it."""
