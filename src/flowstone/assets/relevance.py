"""A task in plain language → the stored assets that have most to do with it."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator

from flowstone.assets.bundles import Bundle
from flowstone.assets.search import SEARCHED, Hit, search

_WORTH = {"name": 8, "title": 5, "tags": 4, "description": 3, "when_to_use": 3, "preamble": 1}
_WORDS = re.compile(r"[^\W_]+")


def related(bundles: tuple[Bundle, ...], text: str, types: tuple[str, ...] = ()) -> list[Hit]:
    """The assets that have a word of the text, as a whole word, the nearest first; without env assets.

    A word counts the more the fewer assets have it, so that those of every prose count for little.
    """
    asked = _words(text)
    everything = search(bundles, "", types or tuple(kind for kind in SEARCHED if kind != "env"))
    held = [(hit, [(worth, asked & _words(part)) for worth, part in _parts(hit)]) for hit in everything]
    spread = Counter(word for _, parts in held for word in set().union(*(words for _, words in parts)))
    weight = {word: math.log2(1 + len(held) / count) for word, count in spread.items()}
    found = [
        Hit(
            hit.type,
            hit.ref,
            hit.path,
            hit.about,
            round(sum(worth * weight[w] for worth, words in parts for w in words)),
        )
        for hit, parts in held
        if any(words for _, words in parts)
    ]
    return sorted(found, key=lambda hit: (-hit.score, hit.ref))


def _parts(hit: Hit) -> Iterator[tuple[int, str]]:
    """The texts of an asset with what a word in them is worth."""
    yield _WORTH["name"], hit.name
    for field in ("title", "description", "when_to_use", "preamble"):
        yield _WORTH[field], getattr(hit.about, field)
    yield _WORTH["tags"], " ".join(hit.about.tags)


def _words(text: str) -> set[str]:
    return set(_WORDS.findall(text.casefold()))
