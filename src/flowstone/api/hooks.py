"""Hooks of a blueprint: pinned in `.orun/provenance.lock`, shown to be unchanged, and run phase by phase."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from flowstone.api.model import Started, Workflow
from flowstone.api.starting import publish
from flowstone.diagnostics import errors_of
from flowstone.errors import CompileError, DigestMismatch, InputError, PlanVersionError, SourceError
from flowstone.ports.dialect import Given
from flowstone.wiring import RUNS_FOLDER

if TYPE_CHECKING:
    from flowstone.api.facade import Flowstone
    from flowstone.formats.orun_job.blueprint import Blueprint
    from flowstone.formats.orun_job.lock import Pin
    from flowstone.source.file import SourceText

LOCK = f"{RUNS_FOLDER}/provenance.lock"


def pin_hooks(flow: Flowstone, path: str) -> tuple[Pin, ...]:
    """Pin the hooks of a blueprint as they are now; those of other blueprints stay pinned as they were."""
    from flowstone.formats.orun_job.lock import encode, merged, pins_of
    from flowstone.stores.files import make_private_folder, write_durably

    name = _name(flow, path)
    fresh = pins_of(name, _blueprint(flow, path)[0])
    place = os.path.join(flow.wiring.cwd, LOCK)
    text = encode(merged(_lock(flow, missing_is_empty=True), name, fresh))
    make_private_folder(os.path.dirname(place))
    write_durably(place, text.encode())
    return fresh


def verify_hooks(flow: Flowstone, path: str | None = None) -> tuple[Pin, ...]:
    """The pins of a blueprint, or of all that the lock knows; DigestMismatch tells all that has changed."""
    from flowstone.formats.orun_job.lock import complaints, pins_of

    pinned = _lock(flow)
    names = dict.fromkeys(pin.blueprint for pin in pinned) if path is None else [_name(flow, path)]
    wrong: list[str] = []
    for name in names:
        own = [pin for pin in pinned if pin.blueprint == name]
        wrong += complaints(name, own, pins_of(name, _blueprint(flow, name)[0]))
    if wrong:
        raise DigestMismatch("\n".join([*wrong, "review what changed, then pin again: orun hooks pin BLUEPRINT"]))
    return tuple(pin for pin in pinned if pin.blueprint in names)


def start_hooks(flow: Flowstone, path: str, phase: str, given: Given) -> Started:
    """Publish a run of the hooks of one phase, once every hook of the blueprint is shown to be as it was pinned."""
    from flowstone.freeze.frozen import freeze

    verify_hooks(flow, path)
    blueprint, source = _blueprint(flow, path)
    plan = blueprint.phases.get(phase)
    if plan is None:
        known = ", ".join(blueprint.phases)
        raise InputError(f'blueprint {blueprint.name} has no hooks of the phase "{phase}" (its phases: {known})')
    workflow = Workflow(path, source, None, lambda: os.path.realpath(source.path))
    return publish(flow.session, workflow, freeze(plan, flow.wiring.engines(plan)), given)


def _blueprint(flow: Flowstone, path: str) -> tuple[Blueprint, SourceText]:
    from msgspec.structs import replace

    from flowstone.formats.orun_job.blueprint import compile_blueprint

    place = flow.wiring.place(path)
    source = replace(flow.wiring.source(path), path=place)
    found, diagnostics = compile_blueprint(source, flow.wiring.source)
    if found is None:
        raise CompileError(path, errors_of(diagnostics))
    return found, source


def _lock(flow: Flowstone, *, missing_is_empty: bool = False) -> tuple[Pin, ...]:
    from flowstone.formats.orun_job.lock import decode

    if missing_is_empty and not os.path.exists(os.path.join(flow.wiring.cwd, LOCK)):
        return ()
    try:
        return decode(flow.wiring.source(LOCK).text)
    except SourceError as error:
        raise SourceError(f"{error.message}; pin the hooks first: orun hooks pin BLUEPRINT") from None
    except PlanVersionError as error:
        raise PlanVersionError(f"{LOCK}: {error.message}", code="WORKFLOW_SOURCE_CHANGED") from None


def _name(flow: Flowstone, path: str) -> str:
    """How the lock calls a blueprint: its path from the folder of `.orun`."""
    return os.path.relpath(flow.wiring.place(path), flow.wiring.cwd).replace(os.sep, "/")
