"""Hooks of blueprints ↔ the text of `.orun/provenance.lock`, and what differs between the two."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from flowstone.errors import PlanVersionError
from flowstone.formats.orun.grammar import API_VERSION
from flowstone.formats.orun_job.blueprint import Blueprint, Hook
from flowstone.formats.orun_job.grammar import LOCK_KIND
from flowstone.values import JsonError, decode_json, pretty_json

_PREFIX = "sha256:"


class File(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    path: str
    digest: str


class Pin(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """One hook as it was pinned. `blueprint` starts from the folder of the lock's `.orun`, `workflow` from that
    of the blueprint; `nested` are the files that the workflow nests."""

    blueprint: str
    id: str
    phase: str
    workflow: str
    digest: str
    nested: tuple[File, ...] = ()


def pins_of(path: str, blueprint: Blueprint) -> tuple[Pin, ...]:
    """The pins of a blueprint's hooks as they are now, in the order of the file."""
    return tuple(_pin(path, hook) for hook in blueprint.hooks)


def merged(pins: Iterable[Pin], path: str, fresh: Iterable[Pin]) -> tuple[Pin, ...]:
    """The lock with the pins of one blueprint replaced; blueprints stand in the order of their paths."""
    return tuple(sorted([*(pin for pin in pins if pin.blueprint != path), *fresh], key=lambda pin: pin.blueprint))


def complaints(path: str, pinned: Iterable[Pin], now: Iterable[Pin]) -> Iterator[str]:
    """What is not as it was pinned: hooks that are new, gone, or another workflow, phase or content."""
    before, after = {pin.id: pin for pin in pinned}, {pin.id: pin for pin in now}
    for name, pin in after.items():
        if name not in before:
            yield f"{path}: hook {name} is not pinned"
        elif pin != before[name]:
            yield f"{path}: hook {name}: {'; '.join(_differences(before[name], pin))}"
    yield from (
        f"{path}: hook {name} is pinned, but the blueprint does not have it" for name in before if name not in after
    )


def encode(pins: Iterable[Pin]) -> str:
    head = {"apiVersion": API_VERSION, "kind": LOCK_KIND}
    return pretty_json({**head, "hooks": [msgspec.to_builtins(pin) for pin in pins]}) + "\n"


def decode(text: str) -> tuple[Pin, ...]:
    """The pins in a lock; PlanVersionError says what is wrong with it."""
    try:
        built: Any = decode_json(text)
        if not isinstance(built, dict) or (built.get("apiVersion"), built.get("kind")) != (API_VERSION, LOCK_KIND):
            raise PlanVersionError(f"not a lock: want apiVersion {API_VERSION} kind {LOCK_KIND}")
        return msgspec.convert(built.get("hooks"), tuple[Pin, ...], strict=True)
    except (JsonError, msgspec.ValidationError) as error:
        raise PlanVersionError(f"the lock is damaged: {error}") from None


def _pin(path: str, hook: Hook) -> Pin:
    own, *nested = hook.files
    files = tuple(File(file.path, _PREFIX + file.digest) for file in nested)
    return Pin(path, hook.step.name, hook.phase, hook.workflow, _PREFIX + own.digest, files)


def _differences(before: Pin, now: Pin) -> Iterator[str]:
    for name in ("phase", "workflow", "digest"):
        old, new = getattr(before, name), getattr(now, name)
        if old != new:
            yield f"{name} changed ({old} → {new})"
    if before.nested != now.nested:
        old_files, new_files = ({file.path: file.digest for file in pin.nested} for pin in (before, now))
        for path in sorted({*old_files, *new_files}):
            if old_files.get(path) != new_files.get(path):
                yield f"{path}: digest changed ({old_files.get(path, 'none')} → {new_files.get(path, 'none')})"
