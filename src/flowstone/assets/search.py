"""Words → the stored assets that they fit, the best first: by name, description, tags and preamble."""

from __future__ import annotations

import msgspec

from flowstone.assets.bundles import Bundle, Found, canonical_ref, list_assets
from flowstone.assets.described import Description, described

SEARCHED = (
    "workflows", "commands", "scripts", "agents", "tasks", "env",
    "skills", "knowledge", "memories", "lessons", "facts",
)  # fmt: skip
"""The types that are looked through; secrets are listed by a verb of their own."""
_PLACES = (("name", 8), ("title", 5), ("tags", 4), ("description", 3), ("when_to_use", 2), ("preamble", 1))
_WHOLE = 2
"""A word that stands for itself counts this many times as one inside another."""


class Hit(msgspec.Struct, frozen=True):
    """An asset that fits; `score` is above 0 where words were given."""

    type: str
    ref: str
    path: str
    about: Description
    score: int = 0

    @property
    def name(self) -> str:
        return self.ref.rpartition("//")[2].partition("/")[2]


def search(bundles: tuple[Bundle, ...], words: str, types: tuple[str, ...] = SEARCHED) -> list[Hit]:
    """The assets in which every word is found, in whatever place; without words all of them, by ref."""
    wanted = tuple(dict.fromkeys(words.casefold().split()))
    found: dict[str, Hit] = {}
    for kind in types:
        for asset in list_assets(bundles, kind):
            hit = _hit(asset, bundles, wanted)
            if hit is not None:
                found.setdefault(hit.ref, hit)
    return sorted(found.values(), key=lambda hit: (-hit.score, hit.ref))


def _hit(asset: Found, bundles: tuple[Bundle, ...], wanted: tuple[str, ...]) -> Hit | None:
    about = described(asset)
    ref = canonical_ref(asset, bundles)
    texts = {
        "name": ref.rpartition("//")[2].partition("/")[2],
        "title": about.title,
        "tags": " ".join(about.tags),
        "description": about.description,
        "when_to_use": about.when_to_use,
        "preamble": about.preamble,
    }
    folded = {place: text.casefold() for place, text in texts.items()}
    scores = [_score(word, folded) for word in wanted]
    if not all(scores):
        return None
    return Hit(asset.type, ref, asset.path, about, sum(scores))


def _score(word: str, texts: dict[str, str]) -> int:
    """How well one word fits: all the places that hold it, each by its weight."""
    total = 0
    for place, weight in _PLACES:
        text = texts[place]
        if word in text:
            total += weight * (_WHOLE if word in _words(text) else 1)
    return total


def _words(text: str) -> list[str]:
    return "".join(char if char.isalnum() else " " for char in text).split()
