"""What `task add` was told → the text of a task file."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import msgspec

from flowstone.formats.akm_task import grammar
from flowstone.values import Json, canonical_json, type_name

_COMMAND_REF = re.compile(r"(?:[A-Za-z0-9_-]+//)?commands/[A-Za-z0-9_./-]+")


class NewTask(msgspec.Struct, frozen=True):
    """Exactly one of `workflow` (a ref), `prompt` (a text or the ref of a command) and `command` is set."""

    workflow: str | None = None
    prompt: str | None = None
    command: str | None = None
    schedule: str | None = None
    params: Mapping[str, Json] = {}
    engine: str | None = None
    description: str | None = None


def task_text(new: NewTask) -> str:
    """The text of version 4. Params become inputs that have them as defaults."""
    lines = [f"version: {grammar.VERSION}"]
    if new.description is not None:
        lines.append(f"description: {_scalar(new.description)}")
    lines += _target(new)
    if new.engine is not None:
        lines.append(f"engine: {_scalar(new.engine)}")
    if new.params:
        lines.append("inputs:")
        lines += [f"  {_key(name)}: {_input(value)}" for name, value in new.params.items()]
    if new.schedule is not None:
        lines.append(f"schedule: {_quoted(new.schedule)}")
    return "\n".join(lines) + "\n"


def _target(new: NewTask) -> list[str]:
    if new.workflow is not None:
        ref = new.workflow if "workflows/" in new.workflow else f"workflows/{new.workflow}"
        return [f"uses: {_scalar(ref)}"]
    if new.command is not None:
        return [f"run: {_quoted(new.command)}"]
    prompt = new.prompt or ""
    key = "ref" if _COMMAND_REF.fullmatch(prompt) else "content"
    return ["uses: akm/command", "with:", f"  {key}: {_quoted(prompt)}"]


def _input(value: Json) -> str:
    kind = type_name(value)
    return f"{{ type: {kind}, default: {_flow(value)} }}"


def _flow(value: Any) -> str:
    """JSON, which YAML reads as it stands; what JavaScript's line ends would break is escaped."""
    return canonical_json(value).replace("\u2028", "\\u2028").replace("\u2029", "\\u2029").replace("\x85", "\\u0085")


def _quoted(text: str) -> str:
    return _flow(text)


def _key(name: str) -> str:
    return name if re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name) else _quoted(name)


def _scalar(text: str) -> str:
    """A word as it is, anything else in quotation marks."""
    plain = re.fullmatch(r"[A-Za-z][A-Za-z0-9_./-]*(?://[A-Za-z0-9_./-]+)?", text)
    words = {"true", "false", "null", "yes", "no", "on", "off", "none"}
    return text if plain and text.lower() not in words else _quoted(text)
