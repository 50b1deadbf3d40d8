"""Stored assets found by words, and what is told of each: the data behind `search`."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from flowstone.errors import InputError

if TYPE_CHECKING:
    from flowstone.api.facade import Flowstone
    from flowstone.assets.search import Hit


def search(flow: Flowstone, words: str, kind: str | None = None) -> list[dict[str, Any]]:
    """The assets in which all words occur, the best first; without words all, by ref.

    `kind` is the type of an asset or its folder (`workflow`, `workflows`); InputError for another word.
    """
    from flowstone.assets.search import SEARCHED
    from flowstone.assets.search import search as found_by

    types = SEARCHED if kind is None else (folder_of(kind, SEARCHED),)
    return [_told(hit, bool(words.split())) for hit in found_by(flow.wiring.settings.bundles, words, types)]


def folder_of(kind: str, known: tuple[str, ...]) -> str:
    """The folder of a type that is searched; InputError for another word."""
    for folder in known:
        if kind in (folder, singular(folder)):
            return folder
    raise InputError(f'Unknown asset type "{kind}".', hint=f"Known types: {', '.join(map(singular, known))}.")


def singular(folder: str) -> str:
    """The type of an asset by its folder: commands → command."""
    return "memory" if folder == "memories" else folder.removesuffix("s")


def _told(hit: Hit, scored: bool) -> dict[str, Any]:
    """One asset; what it does not say is left out."""
    about = hit.about
    row: dict[str, Any] = {
        "type": singular(hit.type),
        "name": hit.name,
        "ref": hit.ref,
        "path": os.path.abspath(hit.path),
        "title": about.title,
        "description": about.description,
        "whenToUse": about.when_to_use,
        "tags": list(about.tags),
    }
    row = {key: value for key, value in row.items() if value}
    return {**row, "score": hit.score} if scored else row
