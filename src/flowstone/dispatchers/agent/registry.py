"""The agent platforms that can be dispatched, by name; a harness is loaded when it is first needed."""

from __future__ import annotations

from importlib import import_module

from flowstone.dispatchers.agent.harness import Harness

HARNESSES = {
    "aider": "aider",
    "amazonq": "amazonq",
    "claude": "claude",
    "codex": "codex",
    "copilot": "copilot",
    "gemini": "gemini",
    "opencode": "opencode",
    "openhands": "openhands",
    "pi": "pi",
}
"""The name of each platform (akm facts 3.11) and its module in `harnesses/`."""
SERVED = ("opencode-sdk",)
"""The platforms that have no harness, because they are talked to by a server of theirs (`served/`)."""


def harness_of(platform: str) -> Harness | None:
    """The harness of a platform; None for one that cannot be dispatched."""
    module = HARNESSES.get(platform)
    if module is None:
        return None
    harness: Harness = import_module(f"flowstone.dispatchers.agent.harnesses.{module}").HARNESS
    return harness
