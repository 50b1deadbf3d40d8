"""The head of an orun file: whether it is of the kind that is wanted, and what it is called."""

from __future__ import annotations

from flowstone.diagnostics import WHOLE_FILE, Place, Report
from flowstone.formats.orun import grammar
from flowstone.formats.orun.fields import mapping_of, scalar_text
from flowstone.source.cursor import Cursor
from flowstone.source.tree import Mapping, Node, Scalar


def is_kind(tree: Node, wanted: str, noun: str, report: Report) -> bool:
    """Whether the file says that it is of a kind; if not, that is reported."""
    version, kind = _shown(tree, "apiVersion"), _shown(tree, "kind")
    if version == grammar.API_VERSION and kind == wanted:
        return True
    place = tree.place
    if isinstance(tree, Mapping):
        wrong = tree.entry("apiVersion" if version != grammar.API_VERSION else "kind")
        place = wrong.value.place if wrong is not None else place
    if version == grammar.OLD_API_VERSION:
        message = f"{version} is not supported; there is no converter, and the language is another one"
        report.error("old-api-version", message, place, f"write apiVersion: {grammar.API_VERSION}")
        return False
    code = {"job": "not-a-job", "blueprint": "not-a-blueprint"}.get(noun, "not-a-workflow")
    message = f'not a {noun}: want apiVersion {grammar.API_VERSION} kind {wanted}, got "{version}" "{kind}"'
    empty = isinstance(tree, Scalar) and not tree.text
    hint = _OF_NO_LANGUAGE if wanted == grammar.KIND and not (version or kind) else None
    report.error(code, message, WHOLE_FILE if empty else place, hint)
    return False


_OF_NO_LANGUAGE = (
    f"begin an orun workflow with `apiVersion: {grammar.API_VERSION}` and `kind: {grammar.KIND}`; an akm workflow is a "
    ".yml file with `name`, `on` and `jobs`, or a .md file"
)
"""The author of a file without either key may have meant a workflow of another language."""


def is_meant(tree: Node, wanted: str, body: str = "steps") -> bool:
    """Whether a file that is none is meant as one: a misspelt or forgotten `apiVersion` or `kind` hides no
    further mistakes, and a file of another language has none of ours. `body` is the key that holds the most."""
    from difflib import SequenceMatcher

    def close(found: str, meant: str) -> bool:
        return SequenceMatcher(None, found.lower(), meant.lower()).ratio() > 0.7

    version, kind = _shown(tree, "apiVersion"), _shown(tree, "kind")
    there = isinstance(tree, Mapping) and tree.entry(body) is not None
    if not version or not kind:
        return there and (version == grammar.API_VERSION or kind == wanted)
    return version != grammar.OLD_API_VERSION and close(version, grammar.API_VERSION) and close(kind, wanted)


def name_of(metadata: Cursor | None, root: Place) -> tuple[str, Place]:
    """`metadata.name` and its place; without one an empty name."""
    name = mapping_of(metadata, grammar.METADATA_KEYS).get("name")
    found = scalar_text(name) if name is not None else None
    if found is None:
        return "", name.place if name else metadata.place if metadata else root
    return found.text, found.place


def _shown(tree: Node, key: str) -> str:
    value = tree.get(key) if isinstance(tree, Mapping) else None
    return value.text[:80] if isinstance(value, Scalar) and value.value is not None else ""
