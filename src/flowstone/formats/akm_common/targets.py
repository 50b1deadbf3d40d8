"""What a `uses:` names: the families of asset refs and the builtin command, and nothing else."""

from __future__ import annotations

import re
from enum import StrEnum

import msgspec

from flowstone.formats.akm_common.document import BUILTIN_COMMAND
from flowstone.values import clip


class Family(StrEnum):
    """What kind of target a step composes."""

    BUILTIN = "akm/command"
    COMMAND = "commands"
    SCRIPT = "scripts"
    TASK = "tasks"
    WORKFLOW = "workflows"


BINDING_FAMILIES = frozenset({Family.TASK, Family.WORKFLOW})
"""Families whose `with:` binds declared inputs or params."""


class Refusal(msgspec.Struct, frozen=True):
    code: str
    message: str
    hint: str | None = None


_SUPPORTED = "commands/…, scripts/…, tasks/…, workflows/… and akm/command"
_NAME = r"[A-Za-z0-9_][A-Za-z0-9_.-]*"
_BUNDLE = r"[A-Za-z0-9_-]+//"
_REF = re.compile(rf"(?:{_BUNDLE})?(?P<family>[a-z]+)/{_NAME}(?:/{_NAME})*")
USES_PATTERN = rf"{BUILTIN_COMMAND}|(?:{_BUNDLE})?(?:commands|scripts|tasks|workflows)/{_NAME}(?:/{_NAME})*"
"""What `classify_uses` accepts, for the published schema."""


def classify_uses(ref: str) -> Family | Refusal:
    """The family of a target, or why it cannot be one."""
    shown = clip(ref, 120)
    if ref == BUILTIN_COMMAND:
        return Family.BUILTIN
    if ref.lower().startswith("docker:"):
        message = f'"{shown}" is a Docker action, which akm does not run'
        return Refusal("docker-action-unsupported", message, f"compose {_SUPPORTED}")
    if ref.startswith(("./", "../", "/", ".\\", "..\\")):
        message = f'"{shown}" is the path of a local action, which akm does not run'
        return Refusal("local-action-path-unsupported", message, f"compose {_SUPPORTED}")
    found = _REF.fullmatch(ref)
    family = found["family"] if found else ""
    if family == "agents":
        message = f'"{shown}" names an agent: a persona, which cannot be executed'
        return Refusal("non-executable-asset-ref", message, "name the agent in a commands/ asset instead")
    if family in {"commands", "scripts", "tasks", "workflows"}:
        return Family(family)
    message = f'"{shown}" is no target: supported are {_SUPPORTED}'
    return Refusal("unsupported-uses-target", message, _locator_hint(ref))


def _locator_hint(ref: str) -> str | None:
    return "akm never fetches a remote action; put a script under scripts/" if "@" in ref else None
