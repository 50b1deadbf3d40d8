"""The typed Python API: compile, lint, plan, run, status, resume. The commands are built on it.

from flowstone.api import Flowstone

flow = Flowstone()
report = flow.run("release.md", values={"version": "1.2.0"})
print(report.state.status)
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import msgspec

from flowstone.diagnostics import Diagnostic, errors_of
from flowstone.errors import (
    CompileError,
    DigestMismatch,
    FreezeError,
    IllegalTransition,
    InputError,
    NotFound,
    SourceError,
    UnknownRun,
)
from flowstone.ports.dialect import Dialect, Given, Resolved
from flowstone.ports.secrets import SCHEME
from flowstone.run.events import Event, RunStatus
from flowstone.run.record import RunRecord, RunRow, RunSummary
from flowstone.source.remote import is_remote
from flowstone.wiring import DIALECTS, RunWorkshop, Wiring, require_dispatchers

if TYPE_CHECKING:
    from flowstone.drivers.drive import DriveOptions, DriveReport
    from flowstone.formats.registry import Compiled
    from flowstone.freeze.frozen import Frozen
    from flowstone.plan.model import Plan
    from flowstone.ports.observer import Observer
    from flowstone.ports.store import Lease, Store
    from flowstone.run.state import State
    from flowstone.source.file import SourceText

SOURCE_SUFFIXES = (".md", ".yml", ".yaml")


class Workflow(msgspec.Struct, frozen=True):
    """A compiled source: `ref` names it in runs, `path` is the file as the user would name it."""

    path: str
    source: Any
    compiled: Any
    named: Callable[[], str]
    """Finds `ref`, which needs the configuration; a mere check does not."""

    @property
    def ref(self) -> str:
        return self.named()

    @property
    def diagnostics(self) -> tuple[Diagnostic, ...]:
        return tuple(self.compiled.diagnostics)


class RunView(msgspec.Struct, frozen=True):
    """A run as it stands: its row, and its state folded from the journal (large values left out)."""

    row: RunRow
    state: Any
    driver: str | None = None
    """Who drives the run now (`pid 123`); None when nobody does."""
    children: tuple[RunRow, ...] = ()
    """The runs of nested workflows, the oldest first."""


class Started(msgspec.Struct, frozen=True):
    """A run that exists now; `resumed` when it did before. `given` is what its drive needs again."""

    run_id: str
    warnings: tuple[str, ...] = ()
    resumed: bool = False


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
        self._plans: dict[str, Plan] = {}
        self._held: dict[str, Lease] = {}
        self.language = language

    def __enter__(self) -> Flowstone:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        for lease in self._held.values():
            lease.release()
        self._held.clear()
        self.wiring.close()

    # compile

    def compile(self, target: str) -> Workflow:
        """Compile a file or an asset ref. Mistakes are in the result's `diagnostics`, not raised."""
        if is_remote(target):
            return self._compiled_remote(target)
        if self.language is not None or is_path(target):
            path = self.wiring.place(target)
            source = self.wiring.source(path)
            return Workflow(target, source, self._compiled(target, path, source), partial(self._ref_of, path))
        found = self.wiring.catalog.find(target)
        source = self.wiring.source(found.path)
        shown = os.path.relpath(found.path, self.wiring.cwd)
        return Workflow(shown, source, self._compiled(shown, found.path, source), lambda: found.ref)

    def compiled_plan(self, target: str) -> Plan:
        """The plan of a source without mistakes, before freezing; else CompileError."""
        plan: Plan = self.sound(target).compiled.plan
        return plan

    def sound(self, target: str) -> Workflow:
        """Compile a source that must have no mistakes; else CompileError with all of them."""
        return self._sound(self.compile(target))

    def lint(self, targets: Sequence[str]) -> list[tuple[str, tuple[Diagnostic, ...]]]:
        """The diagnostics of each file, sorted by place; a file that cannot be read is one of them."""
        results = []
        for target in targets:
            try:
                results.append((target, self.compile(target).diagnostics))
            except (SourceError, NotFound) as error:
                results.append((target, (Diagnostic(error.code.lower().replace("_", "-"), error.message),)))
        return results

    def plan(self, target: str) -> Frozen:
        """Compile and freeze, and write nothing. CompileError, FreezeError or ConfigError."""
        return self._freeze(self._sound(self.compile(target)))

    # runs

    def start(self, target: str, given: Given | None = None, *, new: bool = True) -> Started:
        """Publish a new run of a workflow, or (with `new` False) take up its active run of this scope."""
        given = given or Given()
        workflow = self.sound(target)
        plan: Plan = workflow.compiled.plan
        dialect = self.dialect(plan.dialect)
        store = self.wiring.store_for(plan.dialect)
        if not new and (active := self._active_run(store, workflow.ref)) is not None:
            if given.texts or given.values:
                raise IllegalTransition(
                    f"Workflow parameter flags can only be set on a new run; {workflow.ref} is already active.",
                    code="INVALID_FLAG_VALUE",
                    hint="Continue it without flags, abandon it, or start another one with --new.",
                )
            return Started(active, resumed=True)
        resolved = dialect.resolve(plan, given)
        dialect.connections(plan, given)
        self._granted(given)
        frozen = self._freeze(workflow)
        require_dispatchers(frozen.plan)
        record = self._record(workflow, frozen, dialect, resolved)
        self._unchanged(workflow)
        # Held from before it can be seen until its drive ends, so that nobody else takes it in between.
        self._held[record.id] = store.lease(record.id, f"pid {os.getpid()}")
        store.create(record, RunSummary(updated_at=record.created_at, current_step=frozen.plan.steps[0].id))
        self._plans[record.id] = frozen.plan
        told = (*frozen.warnings, *(notice.message for notice in frozen.notices))
        return Started(record.id, (*resolved.warnings, *told))

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
        line that a unit prints. LeaseHeld when another process drives the run.
        """
        from flowstone.drivers.drive import drive_run
        from flowstone.drivers.publishing import Publisher

        options = options or self.drive_options()
        store, full = self.wiring.store_of(run_id)
        watcher = Publisher(self.wiring.project, observer, on_event)
        return drive_run(
            store,
            full,
            self._plan_of,
            lambda row, state: self._workshop(row, state, given or Given(), lines, options.run_width),
            msgspec.structs.replace(options, reopen=reopen),
            self.wiring.clock,
            watcher,
            self._held.pop(full, None),
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
        from flowstone.drivers.transitions import reopened

        def change(state: State, now: int) -> tuple[Event, ...]:
            event = reopened(state, now)
            return () if event is None else (event,)

        return self._transition(run_id, change)

    def decide(self, run_id: str, step: str, *, approved: bool, by: str, note: str | None = None) -> RunView:
        """Take the judge's place for a step that its gate rejected for good or left without a verdict.

        The decision is journaled with who and when; a drive (`drive(run_id)`) goes on from it.
        """
        from flowstone.drivers.transitions import decided
        from flowstone.run.events import StepDecided

        def change(state: State, now: int) -> tuple[Event, ...]:
            return decided(state, step, StepDecided(step, now, approved, by, note))

        return self._transition(run_id, change)

    def abandon(self, run_id: str) -> RunView:
        """Give a run up, and those that it nests. IllegalTransition for one that has ended."""
        from flowstone.drivers.transitions import abandoned

        def change(state: State, now: int) -> tuple[Event, ...]:
            return (abandoned(state, now),)

        view = self._transition(run_id, change)
        store, waiting = self.wiring.store_for(view.row.record.dialect), [view.row.record.id]
        while waiting:
            for child in store.find(parent=waiting.pop()):
                waiting.append(child.record.id)
                if child.summary.status in (RunStatus.ACTIVE, RunStatus.HELD):
                    self._transition(child.record.id, change, nested=True)
        return view

    def status(self, run_id: str) -> RunView:
        """A run as it stands, by id or unique prefix of it."""
        from flowstone.drivers.journal import replay
        from flowstone.plan.codec import decode_plan

        store, full = self.wiring.store_of(run_id, readonly=True)
        row = store.load(full)
        state = replay(store, full, decode_plan(row.record.plan, check=False), whole=False)
        children = tuple(store.find(parent=full))[::-1]
        return RunView(row, state, store.driver_of(full) if state.active else None, children)

    def list(self, *, ref: str | None = None, scope: str | None = None, active_only: bool = False) -> list[RunRow]:
        """The runs that can be seen from this folder, the newest first."""
        rows = [
            row for store in self.wiring.stores() for row in store.find(ref=ref, scope=scope, active_only=active_only)
        ]
        return sorted(rows, key=lambda row: (row.record.created_at, row.record.id), reverse=True)

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

    def drive_options(self, *, max_parallel: int | None = None, **given: Any) -> DriveOptions:
        """The options of a drive on this machine; `given` fields replace them.

        A workflow's own bound on what runs at a time comes before `max_parallel`.
        """
        from flowstone.drivers.drive import DriveOptions

        return DriveOptions(**{"host_width": self._host_width, "run_width": max_parallel, **given})

    def source_text(self, path: str) -> str:
        """The text of a source for showing its lines; empty when it cannot be read."""
        try:
            return self.wiring.source(path).text
        except SourceError:
            return ""

    def source_changed(self, row: RunRow) -> bool:
        """Whether the source that a run was started from is another one now (or is gone)."""
        path = row.record.source_path
        if path is None:
            return False
        try:
            return self.wiring.source(path).digest != row.record.source_digest
        except SourceError:
            return True

    def check_source(self, run_id: str, path: str | None = None) -> bool:
        """Whether the source of a run (or the file at `path`) is another one than it was started from.

        DigestMismatch where the plan allows a resume only with the same source.
        """
        from flowstone.plan.codec import decode_plan
        from flowstone.plan.model import ResumeRule

        store, full = self.wiring.store_of(run_id, readonly=True)
        row = store.load(full)
        plan = decode_plan(row.record.plan, check=False)
        if plan.policies.resume is not ResumeRule.SAME_SOURCE:
            return self.source_changed(row)
        place = self.wiring.place(path) if path is not None else row.record.source_path
        found = self.wiring.source(place).digest if place is not None else row.record.source_digest
        if found != row.record.source_digest:
            raise _changed(full, "workflow", str(row.record.source_digest), str(found))
        if place is not None and len(plan.read_set) > 1:
            for before, now in zip(plan.read_set, self.compiled_plan(place).read_set, strict=False):
                if before.digest != now.digest:
                    raise _changed(full, f"{before.path}: workflow", before.digest, now.digest)
        return False

    @property
    def _host_width(self) -> int | None:
        """The cap of this machine; a language that keeps its runs in their folder has none."""
        from flowstone.formats.registry import ORUN

        return None if self.language == ORUN else self.wiring.settings.host_concurrency

    def _compiled(self, shown: str, path: str, source: SourceText) -> Compiled:
        from flowstone.formats.registry import compile_source

        return compile_source(shown, path, source, self.language)

    def _compiled_remote(self, target: str) -> Workflow:
        """A fetched orun workflow, as if it lay in the working folder under a name that nothing has."""
        from flowstone.formats.registry import ORUN, compile_source

        source = self.wiring.fetch(target).source
        path = os.path.join(self.wiring.cwd, f".fetched-{source.digest}.yaml")
        compiled = compile_source(source.path, path, source, ORUN)
        return Workflow(source.path, source, compiled, lambda: source.path)

    def _ref_of(self, path: str) -> str:
        return self.wiring.catalog.ref_of(path) or os.path.realpath(path)

    def _sound(self, workflow: Workflow) -> Workflow:
        errors = errors_of(workflow.diagnostics)
        if errors or workflow.compiled.plan is None:
            dialect = self.dialect(DIALECTS[0] if workflow.compiled.format.startswith("akm") else DIALECTS[1])
            raise CompileError(workflow.path, errors, code=dialect.code([d.code for d in errors]))
        return workflow

    def _freeze(self, workflow: Workflow) -> Frozen:
        from flowstone.freeze.frozen import freeze

        plan: Plan = workflow.compiled.plan
        return freeze(plan, self.wiring.engines(plan))

    def _record(self, workflow: Workflow, frozen: Frozen, dialect: Dialect, resolved: Resolved) -> RunRecord:
        from flowstone.config.environment import agent_identity

        clock = self.wiring.clock
        harness, session = agent_identity(self.wiring.env)
        return RunRecord(
            id=dialect.run_id(frozen.plan, clock.new_id(), clock.now_ns()),
            dialect=dialect.name,
            ref=workflow.ref,
            title=frozen.plan.title or frozen.plan.name,
            scope=self.wiring.scope.key,
            cwd=self.wiring.cwd,
            plan=_storable(frozen, resolved.secrets),
            plan_hash=frozen.hash,
            created_at=clock.now_ms(),
            source_path=self.wiring.place(workflow.source.path),
            source_digest=workflow.source.digest,
            params=resolved.stored,
            provenance=self.wiring.fetch(workflow.path).provenance if is_remote(workflow.path) else (),
            harness=harness,
            session=session,
        )

    def _plan_of(self, row: RunRow) -> Plan:
        """The plan that a run is driven by: the frozen one, or that of its unchanged source."""
        from flowstone.plan.codec import decode_plan
        from flowstone.plan.model import ResumeRule

        fresh = self._plans.get(row.record.id)
        if fresh is not None:
            return fresh
        stored = decode_plan(row.record.plan)
        if stored.policies.resume is not ResumeRule.SAME_SOURCE or row.record.source_path is None:
            return stored
        self.check_source(row.record.id)
        return self._freeze(self.sound(row.record.source_path)).plan

    def _unchanged(self, workflow: Workflow) -> None:
        """The guard before publication: the file that was read is still what was read."""
        if self.wiring.source(workflow.source.path).digest != workflow.source.digest:
            raise FreezeError(
                f"{workflow.path} changed while its plan was frozen; nothing was published.",
                code="WORKFLOW_SOURCE_CHANGED",
                hint="Run the command again.",
            )

    def _active_run(self, store: Store, ref: str) -> str | None:
        rows = store.find(ref=ref, scope=self.wiring.scope.key, active_only=True, limit=1)
        return next((row.record.id for row in rows), None)

    def _workshop(self, row: RunRow, state: State, given: Given, lines: bool, run_width: int | None) -> RunWorkshop:
        from flowstone.run.record import RunRow as Row

        dialect = self.dialect(row.record.dialect)
        if state.seq == 0 and (given.texts or given.values):
            resolved = dialect.resolve(state.plan, given)
        else:
            resolved = dialect.resume(state.plan, given, row.record.params or {})
        given = self._granted(given)
        connections = dialect.connections(state.plan, given)
        granted = (value for fields in given.connections.values() for value in fields.values())
        secrets = [*resolved.secrets, *granted, *self._engine_keys(state.plan)]
        assert isinstance(row, Row)
        self.wiring.write_shims(row, state.plan)
        return RunWorkshop(self.wiring, row, resolved.params, connections, secrets, lines, run_width)

    def _granted(self, given: Given) -> Given:
        """The same with the value of each secret that a granted field names; InputError if one is missing."""
        complaints: list[str] = []
        connections: dict[str, dict[str, str]] = {}
        for name, fields in given.connections.items():
            for field, value in fields.items():
                try:
                    found = self.wiring.secrets.resolve(value) if value.startswith(SCHEME) else value
                except InputError as error:
                    complaints.append(f"connection {name}.{field}: {error.message}")
                else:
                    connections.setdefault(name, {})[field] = found
        if complaints:
            raise InputError("\n".join(complaints))
        return msgspec.structs.replace(given, connections=connections)

    def _engine_keys(self, plan: Plan) -> Sequence[str]:
        """The keys of the plan's engines, which are scrubbed from whatever a unit says."""
        from flowstone.plan.checks.structure import engines_of

        specs = list(engines_of(plan))
        if not specs:
            return ()
        from flowstone.dispatchers.llm.credentials import keys_of

        return keys_of(specs, self.wiring.env)

    def _transition(
        self, run_id: str, change: Callable[[State, int], tuple[Event, ...]], *, nested: bool = False
    ) -> RunView:
        from flowstone.drivers.journal import Journal, replay
        from flowstone.drivers.transitions import record, refuse_child
        from flowstone.plan.codec import decode_plan

        store, full = self.wiring.store_of(run_id)
        lease = self._held.pop(full, None) or store.lease(full, f"pid {os.getpid()}")
        try:
            row = store.load(full)
            if not nested:
                refuse_child(row.record)
            state = replay(store, full, decode_plan(row.record.plan), whole=False)
            events = change(state, self.wiring.clock.now_ms())
            if events:
                record(state, Journal(store, full, state.seq), *events)
            return RunView(store.load(full), state)
        finally:
            lease.release()


def diagnostics_text(path: str, text: str, diagnostics: Sequence[Diagnostic], *, colour: bool = False) -> str:
    """Diagnostics of a file as lines of text, each with its source line and a caret."""
    from flowstone.source.report import render_text

    return render_text(path, text, diagnostics, colour)


def diagnostics_json(path: str, diagnostics: Sequence[Diagnostic]) -> list[dict[str, Any]]:
    """Diagnostics of a file as JSON objects."""
    from flowstone.source.report import to_json

    return to_json(path, diagnostics)


def diagnostics_sarif(files: Sequence[tuple[str, Sequence[Diagnostic]]]) -> dict[str, Any]:
    """Diagnostics of several files as one SARIF 2.1.0 log."""
    from flowstone.source.report import to_sarif

    return to_sarif(files)


def is_path(target: str) -> bool:
    """Whether a target names a file, not an asset ref."""
    return (
        is_remote(target)
        or target.endswith(SOURCE_SUFFIXES)
        or target.startswith((".", "/", "~"))
        or os.path.isfile(target)
    )


def workflow_template(name: str, updated: str) -> str:
    """The text of a new akm workflow; `updated` is a date. Its modeline names the published schema."""
    from importlib.resources import files

    from flowstone.formats.akm_common.dialect import template

    return template(name, updated, str(files("flowstone") / "schemas" / "akm-workflow.json"))


def timeout_of(text: str) -> int | None:
    """Milliseconds of a time limit such as "90s" or "10m", None for "none"; InputError for any other text."""
    from flowstone.expr.duration import DurationProblem, parse_timeout

    try:
        return parse_timeout(text)
    except DurationProblem as error:
        raise InputError(f"Invalid value for --timeout: {error}") from None


def _storable(frozen: Frozen, secrets: Sequence[str]) -> str:
    """The plan's text for the store. A plan that a resume makes anew is stored without secrets."""
    from flowstone.plan.codec import encode_plan
    from flowstone.plan.model import ResumeRule
    from flowstone.plan.scrub import scrubbed
    from flowstone.redaction import Redactor

    if not secrets or frozen.plan.policies.resume is not ResumeRule.SAME_SOURCE:
        return frozen.text
    return encode_plan(scrubbed(frozen.plan, Redactor(secrets).text))


def _changed(run_id: str, what: str, before: str, now: str) -> DigestMismatch:
    return DigestMismatch(
        f"resume {run_id}: {what} digest changed (sha256:{before} → sha256:{now}) — "
        "a resumed run must execute the file it started with",
        hint="Restore the file to resume, or start a new run of the changed file.",
    )


__all__ = [
    "Flowstone",
    "Given",
    "RunStatus",
    "RunView",
    "Started",
    "Workflow",
    "is_path",
    "timeout_of",
    "workflow_template",
]
