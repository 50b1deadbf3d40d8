"""`akm log`: what runs have recorded, by run, type, workflow, time and tag."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import click

from flowstone.cli.common import output_options
from flowstone.cli.render.formats import Detail, Output, emit
from flowstone.errors import InputError

if TYPE_CHECKING:
    from flowstone.plan.units import EnvBinding
    from flowstone.ports.store import Store
    from flowstone.run.events import Event

OFFSET = "@offset:"
LAST = 2**63 - 1
"""The largest offset that a store can count to."""


@click.command("log", epilog="Example: akm log --run 0199f2c4 --type workflow_unit_finished --limit 20 --detail full")
@click.option("--run", "run_id", metavar="RUN", help="Only events of this run.")
@click.option("--type", "kind", help="Only events of this type, such as workflow_finished.")
@click.option("--ref", help="Only events of runs of this workflow.")
@click.option("--since", help="Only later events: an ISO time, milliseconds since the epoch, or @offset:<id>.")
@click.option("--limit", type=click.IntRange(min=1), metavar="N", help="Only the N most recent events.")
@click.option("--include-tags", metavar="TAGS", help="Only workflows with one of these tags (a,b).")
@click.option("--exclude-tags", metavar="TAGS", help="No workflows with one of these tags.")
@output_options()
def command(
    run_id: str | None,
    since: str | None,
    include_tags: str | None,
    exclude_tags: str | None,
    output: Output,
    kind: str | None,
    ref: str | None,
    limit: int | None,
) -> None:
    """Show recorded events, the oldest first."""
    from flowstone.api import Flowstone
    from flowstone.cli.akm.runs import reading_store, run_id_of, word_of
    from flowstone.views.log import LogQuery, log_view

    after, moment = _since(since)
    with Flowstone() as flow:
        run = None if run_id is None else run_id_of(flow, run_id)
        store = reading_store(flow) if run is None else flow.wiring.store_of(run, readonly=True)[0]
        known = _Runs(store)
        events = known.tagged(store.events(run_id=run, after=after), _words(include_tags), _words(exclude_tags))
        query = LogQuery(kind, ref, moment, limit)
        full = output.detail is Detail.FULL
        emit(log_view(events, known.source(), query, word_of(flow), after=after, full=full, run=run), output)


def _since(text: str | None) -> tuple[int, int | None]:
    """The offset to begin after, and the earliest moment in milliseconds; InputError for another text."""
    from flowstone.views.moments import moment_of

    if text is None:
        return 0, None
    try:
        return (min(int(text.removeprefix(OFFSET)), LAST), None) if text.startswith(OFFSET) else (0, moment_of(text))
    except ValueError:
        raise InputError(
            f'Invalid value for --since: "{text}" is no time.',
            hint="Write 2026-01-31T12:00:00Z, milliseconds since the epoch, or @offset:<id>.",
        ) from None


def _words(text: str | None) -> frozenset[str]:
    return frozenset(word.strip() for word in (text or "").split(",") if word.strip())


class _Runs:
    """What the log asks about runs, each looked up once."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._refs: dict[str, str] = {}
        self._tags: dict[str, frozenset[str]] = {}
        self._bindings: dict[str, dict[str, tuple[EnvBinding, ...]]] = {}

    def source(self) -> Any:
        from flowstone.views.log import LogSource

        return LogSource(self._ref, self._is_first, self._bound)

    def tagged(
        self, events: Iterator[tuple[int, str, Event]], wanted: frozenset[str], unwanted: frozenset[str]
    ) -> Iterator[tuple[int, str, Event]]:
        """The events of runs whose workflow has a wanted tag (any, without one) and no unwanted one."""
        if not wanted and not unwanted:
            return events

        def fits(tags: frozenset[str]) -> bool:
            return not tags & unwanted and (not wanted or bool(tags & wanted))

        return (event for event in events if fits(self._tags_of(event[1])))

    def _ref(self, run_id: str) -> str:
        if run_id not in self._refs:
            self._load(run_id)
        return self._refs[run_id]

    def _bound(self, run_id: str, step_id: str) -> tuple[EnvBinding, ...]:
        from flowstone.plan.codec import decode_plan
        from flowstone.views.specs import bindings_of

        if run_id not in self._bindings:
            steps = decode_plan(self._store.load(run_id).record.plan).steps
            self._bindings[run_id] = {step.id: bindings_of(step.unit.spec) for step in steps if step.unit is not None}
        return self._bindings[run_id].get(step_id, ())

    def _tags_of(self, run_id: str) -> frozenset[str]:
        if run_id not in self._tags:
            self._load(run_id)
        return self._tags[run_id]

    def _load(self, run_id: str) -> None:
        from flowstone.values import decode_json

        record = self._store.load(run_id).record
        self._refs[run_id] = record.ref
        self._tags[run_id] = frozenset(decode_json(record.plan).get("tags", ()))

    def _is_first(self, run_id: str, event: Event) -> bool:
        first = next(self._store.read(run_id), None)
        return first is not None and first.event == event
