"""What the run verbs of `akm` share: from a target to a run, from a run to what is shown of it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from flowstone.api import Flowstone, RunView, is_path
from flowstone.cli.render.formats import Output, emit
from flowstone.errors import FlowstoneError, UnknownRun

if TYPE_CHECKING:
    from flowstone.ports.store import Store
    from flowstone.run.record import RunRow
    from flowstone.views.words import Word

DIALECT = "akm"
RUN_ID = re.compile(r"[0-9a-fA-F][0-9a-fA-F-]{7,}")
"""A run id or a prefix of one; refs hold a slash and paths a slash or a dot."""

SOURCE_CHANGED = "The source of this workflow has changed since the run started; the run goes on from its frozen plan."


def word_of(flow: Flowstone) -> Word:
    """The language's words for statuses."""
    return flow.dialect(DIALECT).word


def reading_store(flow: Flowstone) -> Store:
    return flow.wiring.store_for(DIALECT, readonly=True)


def run_id_of(flow: Flowstone, target: str) -> str:
    """The full id of an akm run by its id or unique prefix."""
    try:
        store, run_id = flow.wiring.store_of(target, readonly=True)
    except UnknownRun as error:
        raise unknown(target) if error.code == UnknownRun.code else error from None
    if store is not reading_store(flow):
        raise of_another_language(run_id)
    return run_id


def of_another_language(run_id: str) -> UnknownRun:
    return UnknownRun(
        f"Workflow run {run_id} is no run of an akm workflow.",
        hint=f"Show it with: flowstone status {run_id} (and go on with it by: flowstone resume {run_id})",
    )


def refuse_foreign(flow: Flowstone, target: str) -> None:
    """UnknownRun that names the command which knows it, when a target is a run of another language."""
    if is_path(target) or "/" in target:
        return
    try:
        store, run_id = flow.wiring.store_of(target, readonly=True)
    except UnknownRun:
        return
    if store is not reading_store(flow):
        raise of_another_language(run_id)


def unknown(target: str) -> UnknownRun:
    return UnknownRun(
        f'Workflow run or workflow "{target}" not found.', hint="List the active runs with: akm workflow list --active"
    )


def latest_run(flow: Flowstone, target: str, *, all_scopes: bool = False) -> str:
    """The run of a workflow that was updated last in this scope; UnknownRun when there is none."""
    scope = None if all_scopes else flow.wiring.scope.key
    store = reading_store(flow)
    rows = [row for ref in refs_of(flow, target) for row in store.find(scope=scope, ref=ref)]
    if not rows:
        refuse_foreign(flow, target)
        raise UnknownRun(f"No workflow runs found for {target}", hint=f"Start one with: akm workflow run {target}")
    return max(rows, key=_updated).record.id


def refs_of(flow: Flowstone, target: str) -> list[str]:
    """Every spelling under which runs of a workflow may be recorded, the given one included.

    A ref without a bundle names the workflow of any bundle; a path also the ref that it has.
    """
    import os

    if is_path(target):
        path = os.path.join(flow.wiring.cwd, target)
        return list({target, os.path.realpath(path), flow.wiring.catalog.ref_of(path) or target})
    short = target.removesuffix(".md").removesuffix(".yml")
    if "//" in short:
        return [short]
    return [short, *(f"{bundle.name}//{short}" for bundle in flow.wiring.settings.bundles)]


def emit_status(
    flow: Flowstone,
    view: RunView,
    verb: str,
    output: Output,
    *,
    units: bool = False,
    warnings: tuple[str, ...] = (),
) -> None:
    """Print the envelope of a run as it stands."""
    from flowstone.cli.akm.text import writers
    from flowstone.views.children import children_view
    from flowstone.views.status import status_view

    word, now = word_of(flow), flow.wiring.clock.now_ms()
    peek = _peek(flow, view.row.record.id)
    envelope = status_view(view.row, view.state, word, now, verb=verb, units=units, warnings=warnings, peek=peek)
    envelope = {**envelope, **children_view(view.children, word, view.row.record.id)}
    emit(envelope, output, writers(view.row, view.state, word, now))


def _peek(flow: Flowstone, run_id: str) -> Any:
    """Sizes and beginnings of the artifacts that are kept outside the journal."""

    def peek(digest: str) -> tuple[int, str] | None:
        store, _ = flow.wiring.store_of(run_id, readonly=True)
        try:
            data = store.get_blob(digest)
        except FlowstoneError:
            return None
        return len(data), data[:4_000].decode("utf-8", "ignore")

    return peek


def _updated(row: RunRow) -> tuple[int, int, str]:
    return (row.summary.updated_at, row.record.created_at, row.record.id)
