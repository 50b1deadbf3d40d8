"""Document ↔ source IR v1 as JSON: what both akm formats become, encoded, and decoded strictly."""

from __future__ import annotations

from typing import Any

import msgspec

from flowstone.errors import SourceError
from flowstone.formats.akm_common.document import MARKDOWN_JOB, Document
from flowstone.formats.akm_common.semantics import check_document
from flowstone.plan import bounds
from flowstone.values import MAX_DEPTH, Json, JsonError, canonical_bytes, clip, decode_json

MAX_NODES = 50_000
MAX_IR_DEPTH = MAX_DEPTH * 2
"""A schema may be 64 levels deep by itself, and each of them is up to two levels of JSON."""

_UNSAFE_KEYS = frozenset({"__proto__", "prototype", "constructor"})


def encode(document: Document) -> bytes:
    """The whole document with spans and extensions, as canonical JSON."""
    return canonical_bytes(msgspec.to_builtins(document))


def portable_bytes(document: Document) -> bytes:
    """What a document means, whatever file says it: canonical JSON without spans and extensions.

    The id of the one job carries no meaning, so it is the same in both formats here.
    """
    value = _without_source(msgspec.to_builtins(document))
    value["triggers"] = [_without_source(trigger) for trigger in value["triggers"]]
    value["jobs"] = [
        {
            **_without_source(job),
            "id": MARKDOWN_JOB,
            "steps": [_without_source(step) for step in job["steps"]],
        }
        for job in value["jobs"]
    ]
    return canonical_bytes(value)


def decode(data: bytes) -> Document:
    """The document of encoded IR; SourceError says what breaks the format or a rule of the language."""
    if len(data) > bounds.PLAN_BYTES:
        raise _refused(f"it has {len(data):,} bytes, over the 2 MiB of a document")
    try:
        value = decode_json(data, max_depth=MAX_IR_DEPTH)
    except JsonError as error:
        raise _refused(str(error)) from None
    _check_nodes(value)
    try:
        document = msgspec.convert(value, Document)
    except msgspec.ValidationError as error:
        raise _refused(str(error)) from None
    problems = list(check_document(document))
    if problems:
        raise _refused("; ".join(problems[:5]))
    return document


def _without_source(part: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in part.items() if key not in {"source", "extensions"}}


def _check_nodes(value: Json) -> None:
    """Bound the number of values and refuse keys that are not plain data."""
    count, waiting = 0, [value]
    while waiting:
        item = waiting.pop()
        count += 1
        if count > MAX_NODES:
            raise _refused(f"it has over {MAX_NODES:,} nodes")
        if isinstance(item, dict):
            unsafe = _UNSAFE_KEYS.intersection(item)
            if unsafe:
                raise _refused(f'the key "{min(unsafe)}" is not allowed')
            waiting.extend(item.values())
        elif isinstance(item, list):
            waiting.extend(item)


def _refused(reason: str) -> SourceError:
    return SourceError(f"The source IR is not valid: {clip(reason, 1_000)}.")
