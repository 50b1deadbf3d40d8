"""A stored asset → what can be told of it without running it: its description, its tags, the words before its parts."""

from __future__ import annotations

import msgspec

from flowstone.assets.bundles import Found, read_asset
from flowstone.diagnostics import Report
from flowstone.errors import SourceError
from flowstone.source.file import text_of
from flowstone.source.markdown import FrontMatter, sections, split_front_matter
from flowstone.source.tree import Mapping, Scalar, Sequence
from flowstone.source.yaml import YamlRules, read_yaml

MAX_BYTES = 1024 * 1024
"""Bytes of a file that is looked into; of a larger one only the name is known."""
_RULES = YamlRules(aliases=True, anchors=True, tags=True, text_keys_only=False, max_depth=256)
_COMMENTS = ("#", "//", "--", "::", "REM ")
_NAMES_ONLY = ("env", "secrets")


class Description(msgspec.Struct, frozen=True):
    """`title` is a name beside the one of the ref; every field may be empty."""

    title: str = ""
    description: str = ""
    when_to_use: str = ""
    tags: tuple[str, ...] = ()
    preamble: str = ""


def described(found: Found) -> Description:
    """What a file says of itself; of one that cannot be read, or must not be, nothing."""
    if found.type in _NAMES_ONLY:
        return Description()
    try:
        text = text_of(read_asset(found, MAX_BYTES), found.path).text
    except SourceError:
        return Description()
    if found.path.endswith(".md"):
        return _of_markdown(text)
    if found.path.endswith((".yml", ".yaml")):
        return _of_keys(text, Description())
    return Description(description=_comment(text))


def _of_markdown(text: str) -> Description:
    front = split_front_matter(text) or FrontMatter("", 1, text, 1)
    body = sections(front.body, front.body_line)
    return _of_keys(front.yaml, Description(title=body.title or "", preamble=body.preamble))


def _of_keys(yaml: str, known: Description) -> Description:
    root = read_yaml(yaml, _RULES, Report()) if yaml.strip() else None
    if not isinstance(root, Mapping):
        return known
    return msgspec.structs.replace(
        known,
        title=known.title or _text(root, "name"),
        description=_text(root, "description"),
        when_to_use=_text(root, "when_to_use"),
        tags=_texts(root, "tags"),
    )


def _text(root: Mapping, key: str) -> str:
    node = root.get(key)
    return node.text.strip() if isinstance(node, Scalar) and node.value is not None else ""


def _texts(root: Mapping, key: str) -> tuple[str, ...]:
    node = root.get(key)
    items = node.items if isinstance(node, Sequence) else ()
    return tuple(item.text for item in items if isinstance(item, Scalar))


def _comment(text: str) -> str:
    """The first line of comment in a script, behind the line that names its interpreter."""
    for line in text.splitlines()[:20]:
        stripped = line.strip()
        if stripped.startswith("#!") or not stripped:
            continue
        mark = next((mark for mark in _COMMENTS if stripped.upper().startswith(mark)), None)
        return "" if mark is None else stripped[len(mark) :].strip(" #/-:")
    return ""
