"""The facade: each thing that the API can do, as a method; what is done stands in the modules beside it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from flowstone.api.model import RunView, Started, Workflow
from flowstone.api.session import Session
from flowstone.api.texts import unreadable
from flowstone.diagnostics import Diagnostic
from flowstone.errors import (
    NotFound,
    SourceError,
    UnknownRun,
    UsageError,
)
from flowstone.ports.dialect import Dialect, Given
from flowstone.run.events import Event
from flowstone.run.record import RunRow
from flowstone.wiring import Wiring

if TYPE_CHECKING:
    from flowstone.api.housekeeping import Cleared, Rubbish, Rules
    from flowstone.api.limits import Waiting
    from flowstone.api.vendoring import Vendoring
    from flowstone.drivers.drive import DriveOptions, DriveReport
    from flowstone.freeze.frozen import Frozen
    from flowstone.plan.model import Plan
    from flowstone.ports.observer import Observer
    from flowstone.run.seeding import Seed


class Flowstone:
    """The facade. One object for one working folder; `close` (or `with`) releases its stores.

    Errors are those of `flowstone.errors`: CompileError carries the diagnostics of a source,
    UsageError says what the caller must change, StoreError what is wrong with the state on disk.
    """

    def __init__(
        self, cwd: str | None = None, env: Mapping[str, str] | None = None, *, language: str | None = None
    ) -> None:
        """`language` (a name of `formats.registry`) has every target read as a file of that language."""
        self.wiring = Wiring(cwd, env)
        self.session = Session(self.wiring, language)
        self.language = language

    def __enter__(self) -> Flowstone:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self.session.close()

    # compile

    def compile(self, target: str) -> Workflow:
        """Compile a file or an asset ref. Mistakes are in the result's `diagnostics`, not raised."""
        return self.session.compiling.compile(target)

    def compiled_plan(self, target: str) -> Plan:
        """The plan of a source without mistakes, before freezing; else CompileError."""
        plan: Plan = self.sound(target).compiled.plan
        return plan

    def sound(self, target: str) -> Workflow:
        """Compile a source that must have no mistakes; else CompileError with all of them."""
        return self.session.compiling.sound(target)

    def lint(self, targets: Sequence[str]) -> list[tuple[str, tuple[Diagnostic, ...]]]:
        """The diagnostics of each file, sorted by place; a file that cannot be read is one of them."""
        results = []
        for target in [targets] if isinstance(targets, str) else targets:
            try:
                results.append((target, self.compile(target).diagnostics))
            except (SourceError, NotFound) as error:
                results.append((target, (unreadable(target, error),)))
        return results

    def plan(self, target: str) -> Frozen:
        """Compile and freeze, and write nothing. CompileError, FreezeError or ConfigError."""
        return self.session.compiling.freeze(self.sound(target))

    @property
    def vendoring(self) -> Vendoring:
        """The pinned copies of remote workflows in the working folder."""
        from flowstone.api.vendoring import Vendoring

        return Vendoring(self.wiring.remotes, self.sound, self.wiring.cwd)

    # runs

    def start(self, target: str, given: Given | None = None, *, new: bool = True, reuse: str | None = None) -> Started:
        """Publish a new run of a workflow, or (with `new` False) take up its active run of this scope.

        `reuse` names an earlier run: steps that stand unchanged since are taken over (see `reuse_list`).
        """
        from flowstone.api.starting import start

        return start(self.session, target, given or Given(), new=new, reuse=reuse)

    def reuse_list(self, target: str, run_id: str, given: Given | None = None) -> tuple[Seed, ...]:
        """What a new run of a workflow would reuse of an earlier one, run again, or run for the first time."""
        from flowstone.api.reusing import reuse_list

        return reuse_list(self.session, target, run_id, given or Given())

    def drive(
        self,
        run_id: str,
        given: Given | None = None,
        *,
        options: DriveOptions | None = None,
        observer: Observer | None = None,
        on_event: Callable[[Event], None] | None = None,
        reopen: bool = False,
        lines: bool = False,
    ) -> DriveReport:
        """Drive a run as far as it gets; `reopen` takes up one that failed or is held.

        `on_event` is called with each event after its commit; `lines` has the observer told every
        line that a unit prints. LeaseHeld when another process drives the run. Under a limit of the
        configuration the run waits for its turn first.
        """
        from flowstone.api.driving import drive

        return drive(
            self.session,
            run_id,
            given or Given(),
            options=options or self.drive_options(),
            observer=observer,
            on_event=on_event,
            reopen=reopen,
            lines=lines,
        )

    def run(
        self,
        target: str,
        values: Mapping[str, Any] | None = None,
        *,
        observer: Observer | None = None,
        on_event: Callable[[Event], None] | None = None,
    ) -> DriveReport:
        """Start a new run with ready values and drive it as far as it gets."""
        given = Given(values=values or {})
        started = self.start(target, given)
        return self.drive(started.run_id, given, observer=observer, on_event=on_event)

    def resume(self, run_id: str) -> RunView:
        """Reopen a run that failed or is held, without driving it; an active one stays as it is."""
        from flowstone.api.changing import resume

        return resume(self.session, run_id)

    def decide(self, run_id: str, step: str, *, approved: bool, by: str, note: str | None = None) -> RunView:
        """Answer an approval, or take the judge's place for a step that its gate rejected for good or left open.

        The decision is journaled with who and when; a drive (`drive(run_id)`) goes on from it. A live
        driver that waits for an approval finds the answer by itself.
        """
        from flowstone.api.changing import decide

        return decide(self.session, run_id, step, approved=approved, by=by, note=note)

    def abandon(self, run_id: str) -> RunView:
        """Give a run up, and those that it nests. IllegalTransition for one that has ended."""
        from flowstone.api.changing import abandon

        return abandon(self.session, run_id)

    def status(self, run_id: str) -> RunView:
        """A run as it stands, by id or unique prefix of it."""
        from flowstone.api.changing import status

        return status(self.session, run_id)

    def list(self, *, ref: str | None = None, scope: str | None = None, active_only: bool = False) -> list[RunRow]:
        """The runs that can be seen from this folder, the newest first."""
        rows = [
            row for store in self.wiring.stores() for row in store.find(ref=ref, scope=scope, active_only=active_only)
        ]
        return sorted(rows, key=lambda row: (row.record.created_at, row.record.id), reverse=True)

    def waiting(self) -> Mapping[str, Waiting]:
        """The runs that wait for their turn under a limit now, by id."""
        from flowstone.api.limits import waiting

        return waiting(self.session)

    def rubbish(self, rules: Rules) -> tuple[Rubbish, ...]:
        """Runs, worktrees and crash reports that nobody needs any more, by the rules; removes nothing."""
        from flowstone.api.housekeeping import rubbish

        return rubbish(self.session, rules)

    def clear(self, found: Sequence[Rubbish]) -> Cleared:
        """Remove what `rubbish` found, and the large values that no run names any more."""
        from flowstone.api.housekeeping import clear

        return clear(self.session, found)

    def last(self) -> str:
        """The id of the newest run that was started in this folder, whatever its language."""
        rows = [row for store in self.wiring.stores() for row in store.find(cwd=self.wiring.cwd, limit=1)]
        if not rows:
            raise UnknownRun("No run was started in this folder yet.", hint="Start one with: flowstone run FILE")
        return max(rows, key=lambda row: (row.record.created_at, row.record.id)).record.id

    def events(self, run_id: str | None = None, after: int = 0) -> Iterator[tuple[int, str, Event]]:
        """Events as (offset, run id, event), the oldest first."""
        if run_id is not None:
            store, full = self.wiring.store_of(run_id, readonly=True)
            yield from store.events(run_id=full, after=after)
            return
        for store in self.wiring.stores():
            yield from store.events(after=after)

    # what the commands also need

    def dialect(self, name: str) -> Dialect:
        from flowstone.formats.registry import dialect_of

        return dialect_of(name)

    def drive_options(
        self,
        *,
        max_parallel: int | None = None,
        from_step: str | None = None,
        only_step: str | None = None,
        **given: Any,
    ) -> DriveOptions:
        """The options of a drive on this machine; `given` fields replace them.

        A workflow's own bound on what runs at a time comes before `max_parallel`. `from_step` runs a
        step and all that follows from it afresh, `only_step` that step alone.
        """
        from flowstone.drivers.drive import DriveOptions
        from flowstone.drivers.transitions import Again

        if from_step is not None and only_step is not None:
            raise UsageError("Give --from or --only, not both.")
        step = from_step if only_step is None else only_step
        again = None if step is None else Again(step, only_step is not None)
        return DriveOptions(**{"host_width": self._host_width, "run_width": max_parallel, "again": again, **given})

    def source_text(self, path: str) -> str:
        """The text of a source for showing its lines; empty when it cannot be read."""
        try:
            return self.wiring.source(path).text
        except SourceError:
            return ""

    def source_changed(self, row: RunRow) -> bool:
        """Whether the source that a run was started from is another one now (or is gone)."""
        from flowstone.api.driving import source_changed

        return source_changed(self.wiring, row)

    def check_source(self, run_id: str, path: str | None = None) -> bool:
        """Whether the source of a run (or the file at `path`) is another one than it was started from.

        DigestMismatch where the plan allows a resume only with the same source.
        """
        from flowstone.api.driving import check_source

        return check_source(self.session, run_id, path)

    @property
    def _host_width(self) -> int | None:
        """The cap of this machine; a language that keeps its runs in their folder has none."""
        from flowstone.formats.registry import ORUN

        return None if self.language == ORUN else self.wiring.settings.host_concurrency
