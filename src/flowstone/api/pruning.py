"""Schedules and records of files that are gone: finding them, and clearing them away when asked."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import msgspec

from flowstone.api.scheduling import SyncOptions, synchronise, timetable_of
from flowstone.api.tasks import task_ref
from flowstone.errors import FlowstoneError

if TYPE_CHECKING:
    from flowstone.api import Flowstone


class Leftover(msgspec.Struct, frozen=True):
    """What is left of a file that is gone."""

    ref: str
    enabled: bool
    rows: tuple[str, ...]
    records: int


def leftovers(flow: Flowstone, ids: Sequence[str] = ()) -> list[Leftover]:
    """What is left of tasks and workflows whose files are gone; `ids` bounds it to these ids or refs."""
    enabled = flow.wiring.activation.enabled()
    timetable = timetable_of(flow)
    rows = [] if timetable.problem() is not None else timetable.rows()
    records = [run.ref for run in flow.wiring.task_history.newest()]
    refs = dict.fromkeys((*enabled, *(row.ref for row in rows), *records))
    return [
        Leftover(ref, ref in enabled, tuple(row.key for row in rows if row.ref == ref), records.count(ref))
        for ref in refs
        if _is_meant(ref, ids) and _is_gone(flow, ref)
    ]


def clear(flow: Flowstone, found: Sequence[Leftover]) -> None:
    """Take away what is left: the enabling, the rows, the records."""
    refs = tuple(one.ref for one in found)
    flow.wiring.activation.change(lambda enabled: tuple(ref for ref in enabled if ref not in refs))
    if any(one.rows for one in found):
        synchronise(flow, SyncOptions(only=refs))
    for one in found:
        if one.records:
            flow.wiring.task_history.forget(one.ref)


def _is_meant(ref: str, ids: Sequence[str]) -> bool:
    wanted = [name if "workflows/" in name else task_ref(name) for name in ids]
    return not wanted or any(ref == one or ref.endswith(f"//{one}") for one in wanted)


def _is_gone(flow: Flowstone, ref: str) -> bool:
    if "//" not in ref:
        return False
    try:
        flow.wiring.catalog.find(ref)
    except FlowstoneError:
        return True
    return False
