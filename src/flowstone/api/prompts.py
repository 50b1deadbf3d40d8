"""Stored commands and agents: what is wrong with a file, and what one says of itself."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from flowstone.diagnostics import Diagnostic
from flowstone.errors import SourceError

if TYPE_CHECKING:
    from flowstone.api.facade import Flowstone

FAMILIES = ("commands", "agents")


def diagnose(path: str, family: str) -> tuple[Diagnostic, ...]:
    """All that is wrong with the file of a command or an agent; one that cannot be read is a mistake too."""
    from flowstone.formats.akm_prompts.asset import diagnose_prompt
    from flowstone.plan.bounds import SOURCE_BYTES
    from flowstone.source.file import read_source

    try:
        return diagnose_prompt(read_source(path, SOURCE_BYTES), family)
    except SourceError as error:
        return (Diagnostic("source-unreadable", error.message),)


def family_of(target: str) -> str | None:
    """The folder of a ref whose asset is shown as it stands: a command, an agent or a script."""
    kind = target.rpartition("//")[2].partition("/")[0]
    return kind if kind in (*FAMILIES, "scripts") else None


def show(flow: Flowstone, target: str, family: str) -> dict[str, Any]:
    """A command, an agent or a script: what it is for, its hints, its text, and where it lies."""
    from flowstone.source.file import text_of

    found = flow.wiring.catalog.find(target)
    bundle, _, rest = found.ref.rpartition("//")
    view: dict[str, Any] = {
        "type": family.removesuffix("s"),
        "name": rest.partition("/")[2],
        "ref": found.ref,
        "origin": bundle or None,
    }
    source = text_of(found.data, found.path)
    if family == "scripts":
        view["content"] = source.text
    else:
        from flowstone.formats.akm_prompts.asset import read_prompt

        asset = read_prompt(os.path.relpath(found.path, flow.wiring.cwd), source, family)
        hints = {key: getattr(asset, key) for key in ("description", "agent", "engine", "model", "inference")}
        view |= {key: value for key, value in hints.items() if value is not None}
        view |= {key: list(getattr(asset, key)) for key in ("tags", "tools") if getattr(asset, key)}
        view["content"] = asset.text
    return {**view, "path": found.path, "editable": os.access(found.path, os.W_OK), "shape": "show", "schemaVersion": 1}
