"""Stored assets that nothing runs (knowledge, skills, env assets …), by ref → what is told of them; and curating.

What runs is shown elsewhere: workflows and tasks compiled, commands, agents and scripts by `prompts`.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from flowstone.api.texts import is_path
from flowstone.errors import InputError

if TYPE_CHECKING:
    from flowstone.api.facade import Flowstone

RUN = ("workflows", "tasks", "commands", "agents", "scripts")
SILENT = ("env", "secrets")
"""Types whose content is nobody's business."""
CONTENT_CHARS = 8_000
"""What curating shows of one asset."""


def is_plain(target: str) -> bool:
    """Whether a target is the ref of an asset that nothing runs."""
    from flowstone.assets.refs import is_ref, parse_ref

    if is_path(target) or not is_ref(target):
        return False
    try:
        return parse_ref(target).type not in RUN
    except InputError:
        return False


def show_plain(flow: Flowstone, target: str) -> dict[str, Any]:
    """The asset with its text; of an env asset the names alone, of a secret nothing. NotFound where there is none."""
    from flowstone.api.searching import singular
    from flowstone.assets.bundles import Bundle, Found
    from flowstone.assets.described import described
    from flowstone.assets.refs import parse_ref

    asset = flow.wiring.catalog.find(target)
    ref = parse_ref(asset.ref)
    about = described(Found(Bundle(asset.bundle, ""), ref.type, asset.path))
    view: dict[str, Any] = {"type": singular(ref.type), "name": ref.name, "ref": asset.ref, "origin": asset.bundle}
    told = {
        "title": about.title,
        "description": about.description,
        "whenToUse": about.when_to_use,
        "tags": list(about.tags),
    }
    view |= {key: value for key, value in told.items() if value}
    if ref.type == "env":
        view["keys"] = list(flow.wiring.catalog.env_names(asset.ref).keys)
    if ref.type not in SILENT:
        view["content"] = _content(asset.data, asset.path)
    return {**view, "path": asset.path, "editable": os.access(asset.path, os.W_OK), "shape": "show", "schemaVersion": 1}


def curate(flow: Flowstone, text: str, types: Sequence[str] = (), limit: int = 3) -> tuple[int, list[dict[str, Any]]]:
    """How many assets have to do with a task, and the nearest of them with their texts."""
    from flowstone.api.searching import folder_of, singular
    from flowstone.assets.relevance import related
    from flowstone.assets.search import SEARCHED

    kinds = tuple(folder_of(kind, SEARCHED) for kind in types)
    hits = related(flow.wiring.settings.bundles, text, kinds)
    rows = []
    for hit in hits[:limit]:
        row: dict[str, Any] = {"type": singular(hit.type), "ref": hit.ref, "path": os.path.abspath(hit.path)}
        if hit.about.description:
            row["description"] = hit.about.description
        if hit.type not in SILENT:
            row |= _clipped(_content(flow.wiring.catalog.find(hit.ref).data, hit.path))
        rows.append(row)
    return len(hits), rows


def _clipped(content: str) -> dict[str, Any]:
    short = content[:CONTENT_CHARS]
    return {"content": short} if short == content else {"content": short, "truncated": True}


def _content(data: bytes, path: str) -> str:
    """The text of a file, without its front matter, whose fields stand beside it."""
    from flowstone.source.markdown import split_front_matter

    text = data.decode("utf-8", "replace").replace("\r\n", "\n").removeprefix("\ufeff")
    parts = split_front_matter(text) if path.endswith(".md") else None
    return text if parts is None else parts.body.strip("\n")
