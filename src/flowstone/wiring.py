"""The composition root: settings, stores, catalog and dispatchers, each made when it is first needed."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import cached_property
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from flowstone.config.environment import cores, variables, widened
from flowstone.config.paths import Paths, locate
from flowstone.errors import FlowstoneError, FreezeError, UnknownRun, UsageError
from flowstone.ports.dispatcher import Dispatch, Dispatcher, Workspace
from flowstone.run.outcome import Outcome
from flowstone.source.remote import is_remote, parse_remote

if TYPE_CHECKING:
    from flowstone.assets.catalog import FileCatalog
    from flowstone.assets.vault import Vault
    from flowstone.config.scope import Scope
    from flowstone.config.settings import Settings
    from flowstone.drivers.clock import SystemClock
    from flowstone.plan.model import Plan
    from flowstone.plan.units import AnySpec
    from flowstone.ports.activation import Activation
    from flowstone.ports.catalog import EngineConfig
    from flowstone.ports.dialect import Dialect, Resolved
    from flowstone.ports.history import TaskHistory
    from flowstone.ports.observer import Observer
    from flowstone.ports.secrets import Secrets
    from flowstone.ports.store import Lease, Store
    from flowstone.redaction import Redactor
    from flowstone.run.events import Event
    from flowstone.run.record import RunRow
    from flowstone.run.state import State
    from flowstone.source.fetch import Fetched
    from flowstone.source.file import SourceText
    from flowstone.source.remotes import Remotes
    from flowstone.stores.directory.store import DirectoryStore

RUNS_FOLDER = ".orun"


class Wiring:
    """Everything that a command may need, for one working folder and one environment."""

    def __init__(self, cwd: str | None = None, env: Mapping[str, str] | None = None) -> None:
        self.cwd = os.path.abspath(cwd or _working_folder())
        self.env: Mapping[str, str] = widened(variables() if env is None else env)
        self._stores: dict[str, Store] = {}
        self._told: set[str] = set()
        self.frozen = False
        """Whether a remote file is refused that neither the lock nor its reference pins."""
        self._dialects: dict[str, Dialect] = {}
        self.on_fetch: Callable[[str], None] | None = None
        """Told what was fetched, once for each commit or address, before it is read."""

    @cached_property
    def paths(self) -> Paths:
        return locate(self.env)

    @cached_property
    def settings(self) -> Settings:
        from flowstone.config.settings import load_settings

        return load_settings(self.paths, cores(), self.cwd)

    @cached_property
    def scope(self) -> Scope:
        from flowstone.config.scope import run_scope

        return run_scope(self.cwd, self.settings.bundle.root)

    @cached_property
    def catalog(self) -> FileCatalog:
        from flowstone.assets.catalog import FileCatalog

        return FileCatalog(self.settings.bundles)

    @cached_property
    def vault(self) -> Vault:
        from flowstone.assets.vault import Vault

        return Vault(self.settings.bundles)

    def vault_at(self, root: str) -> Vault:
        """The env assets and secrets of one folder, whether it is configured or not."""
        from flowstone.assets.bundles import Bundle, bundle_name
        from flowstone.assets.vault import Vault

        return Vault((Bundle(bundle_name(root), root),))

    def engines(self, plan: Plan) -> EngineConfig:
        """The configuration that freezing a plan reads; of languages without engines none of it."""
        from flowstone.ports.catalog import EngineConfig

        if not plan.limits.host_capped:
            return EngineConfig()
        from shutil import which

        from flowstone.config.models import read_models

        config = self.settings.engines
        opencode = config.default_engine is None and which("opencode", path=self.env.get("PATH")) is not None
        return replace(config, models=read_models(self.paths), opencode=opencode)

    def bound_values(self, plan: Plan) -> tuple[str, ...]:
        """What the env assets of a plan hold by now, and the variables that its tasks want scrubbed.

        For redaction: a step may print what another one was given.
        """
        from flowstone.plan.checks.structure import env_refs_of

        named = (name for step in plan.steps if step.unit is not None for name in step.unit.redact)
        found = [self.env[name] for name in named if self.env.get(name)]
        for ref in dict.fromkeys(binding.ref for binding in env_refs_of(plan)):
            with suppress(FlowstoneError):  # the unit that binds it will say what is wrong
                found += (value for value in self.catalog.env_values(ref).values() if value is not None)
        return tuple(found)

    def engine_keys(self, plan: Plan) -> Sequence[str]:
        """The keys of the plan's engines, which are scrubbed from whatever a unit says."""
        from flowstone.plan.checks.structure import engines_of

        specs = list(engines_of(plan))
        if not specs:
            return ()
        from flowstone.dispatchers.llm.credentials import keys_of

        return keys_of(specs, self.env)

    @cached_property
    def secrets(self) -> Secrets:
        from flowstone.config.secrets import HostSecrets

        return HostSecrets(self.cwd, self.env)

    @cached_property
    def activation(self) -> Activation:
        """Which schedules run on this machine."""
        from flowstone.config.activation import ConfigActivation

        return ConfigActivation(self.paths.config_file)

    @cached_property
    def task_history(self) -> TaskHistory:
        from flowstone.stores.sqlite.tasks import SqliteTaskHistory

        return SqliteTaskHistory(self.paths.database)

    @cached_property
    def clock(self) -> SystemClock:
        from flowstone.drivers.clock import SystemClock

        return SystemClock()

    def source(self, path: str) -> SourceText:
        """The text of a file, or of what a remote reference names; SourceError."""
        from flowstone.plan.bounds import SOURCE_BYTES
        from flowstone.source.file import read_source

        return self.fetch(path).source if is_remote(path) else read_source(self.place(path), SOURCE_BYTES)

    def place(self, path: str) -> str:
        """Where a source lies: an absolute path, or the remote reference itself without a password."""
        return parse_remote(path).text if is_remote(path) else os.path.join(self.cwd, path)

    @cached_property
    def remotes(self) -> Remotes:
        from flowstone.dispatchers.http.failures import reason_of
        from flowstone.source.remotes import Remotes

        return Remotes(self.cwd, self.env, reason_of, frozen=self.frozen)

    def fetch(self, target: str) -> Fetched:
        """What a remote reference names: the pinned copy of it, else fetched once by this process."""
        found = self.remotes.get(target)
        told = found.commit or found.label
        if self.on_fetch is not None and told not in self._told:
            self._told.add(told)
            self.on_fetch(found.notice)
        return found

    def store_for(self, dialect: str, *, readonly: bool = False) -> Store:
        """The store that keeps a dialect's runs: one database, or the folder of documented files."""
        from flowstone.stores.registry import open_store

        name, path = self._location(dialect)
        key = f"{name}:{path}:{readonly}"
        if key not in self._stores:
            self._stores[key] = open_store(name, path, readonly=readonly)
        return self._stores[key]

    def stores(self, *, readonly: bool = True) -> list[Store]:
        """Every store that may hold runs of this folder; those that do not exist are left out."""
        found = []
        for dialect in DIALECTS:
            path = self._location(dialect)[1]
            if os.path.exists(path):
                found.append(self.store_for(dialect, readonly=readonly))
        return found

    def store_of(self, run_id: str, *, readonly: bool = False) -> tuple[Store, str]:
        """The store that holds a run, and the run's full id."""
        for dialect in DIALECTS:
            if os.path.exists(self._location(dialect)[1]):
                store = self.store_for(dialect, readonly=readonly)
                try:
                    return store, store.resolve_id(run_id)
                except UnknownRun:
                    continue
        from flowstone.stores.lookup import PREFIX_CHARS

        raise UnknownRun(
            f'Workflow run "{run_id}" not found.',
            hint=("" if len(run_id) >= PREFIX_CHARS else f"Give {PREFIX_CHARS} characters of its id or more. ")
            + "List the runs of this folder with: flowstone list",
        )

    def workspace(self, row: RunRow) -> Workspace:
        """Where a run's commands work: in the folder in which it was started, if that still exists."""
        base = row.record.cwd if os.path.isdir(row.record.cwd) else self.cwd
        if row.record.dialect not in FOLDER_DIALECTS:
            return Workspace(base=base, cwd=base)
        store = self._directory_store(row.record.dialect)
        return Workspace(
            base=base,
            cwd=base,
            run_folder=store.run_folder(row.record.id),
            shim_folder=store.shim_folder(row.record.id),
            provenance=row.record.provenance,
        )

    def project(self, state: State, events: Sequence[Event]) -> tuple[str, ...]:
        """Write the files of a run that its language documents and that changed; returns warnings."""
        from flowstone.formats.registry import dialect_of

        name = state.plan.dialect
        if name not in self._dialects:
            self._dialects[name] = dialect_of(name)
        projection = self._dialects[name].projection
        if projection is None:
            return ()
        return self._directory_store(name).publish(state.run_id, projection.files(state, events))

    def write_shims(self, row: RunRow, plan: Plan) -> None:
        """Write the programs that commands of a plan find in front of their PATH."""
        from flowstone.plan.units import ExecSpec

        specs = [step.unit.spec for step in plan.steps if step.unit is not None]
        names = [spec.environment.shim for spec in specs if isinstance(spec, ExecSpec)]
        for name in dict.fromkeys(name for name in names if name is not None):
            self._directory_store(row.record.dialect).write_shim(row.record.id, name, self.program(name))

    def program(self, name: str) -> list[str]:
        """The words that start one of our own commands as this very program, from any folder."""
        parts = self.env.get("PYTHONPATH", "").split(os.pathsep)
        front = [os.path.abspath(part) for part in parts if part]
        root = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
        code = (
            f"import sys; sys.path[:0] = {front!r}; sys.path.append({root!r}); "
            f"from flowstone.cli.{name}.main import main; main()"
        )
        return [sys.executable, "-P", "-c", code]

    def close(self) -> None:
        for store in self._stores.values():
            store.close()
        self._stores.clear()

    def _directory_store(self, dialect: str) -> DirectoryStore:
        from flowstone.stores.directory.store import DirectoryStore

        store = self.store_for(dialect)
        assert isinstance(store, DirectoryStore)
        return store

    def _location(self, dialect: str) -> tuple[str, str]:
        if dialect in FOLDER_DIALECTS:
            return "directory", os.path.join(self.cwd, RUNS_FOLDER)
        return "sqlite", self.paths.database


def _working_folder() -> str:
    try:
        return os.getcwd()
    except FileNotFoundError:
        text = "the folder that you work in does not exist any more"
        raise UsageError(text, hint="Change to a folder that exists (cd) and run the command again.") from None


DIALECTS = ("akm", "orun")
FOLDER_DIALECTS = frozenset({"orun", "orun-job"})


class RunWorkshop:
    """The dispatchers of one run's drive (the Workshop port of `flowstone.drivers.drive`).

    `run_width` is how many units may run at a time where a nested workflow does not say.
    """

    def __init__(
        self,
        wiring: Wiring,
        row: RunRow,
        params: dict[str, Any],
        connections: dict[str, Any],
        secrets: Sequence[str],
        lines: bool,
        run_width: int | None = None,
    ) -> None:
        from flowstone.redaction import Redactor

        self.params = params
        self.connections = connections
        self.wiring = wiring
        self.row = row
        self._redactor: Redactor = Redactor(secrets)
        self._secrets = tuple(secrets)
        self._lines = lines
        self.run_width = run_width
        self._made: dict[type, Dispatcher] = {}

    def open(self, lease: Lease, observer: Observer) -> Callable[[AnySpec], Dispatcher]:
        """Dispatchers by kind of unit, each made at its first use."""

        def dispatcher_of(spec: AnySpec) -> Dispatcher:
            kind = type(spec)
            if kind not in self._made:
                self._made[kind] = self._make(spec, lease, observer)
            return self._made[kind]

        return dispatcher_of

    def redact(self, value: Any) -> Any:
        return self._redactor.json(value)

    async def close(self) -> None:
        for dispatcher in self._made.values():
            await dispatcher.close()

    def _make(self, spec: AnySpec, lease: Lease, observer: Observer) -> Dispatcher:
        maker = MAKERS.get(type(spec).__name__)
        return _Unavailable(spec) if maker is None else maker(self, lease, observer)

    def _commands(self, lease: Lease, observer: Observer) -> Dispatcher:
        from flowstone.dispatchers.process.dispatcher import ProcessDispatcher
        from flowstone.ports.observer import lines_of

        return ProcessDispatcher(
            self.wiring.workspace(self.row),
            self.wiring.env,
            self._redactor,
            lambda ref: self.wiring.catalog.env_values(ref),  # noqa: PLW0108  (the catalog is made when a unit needs it)
            lines_of(observer) if self._lines else None,
            lease.fd,
            observer.warned,
        )

    def _sleeps(self, lease: Lease, observer: Observer) -> Dispatcher:
        from flowstone.dispatchers.sleep import SleepDispatcher

        return SleepDispatcher()

    def _requests(self, lease: Lease, observer: Observer) -> Dispatcher:
        from flowstone.dispatchers.http.dispatcher import HttpDispatcher

        return HttpDispatcher(self.connections, self._redactor)

    def _scripts(self, lease: Lease, observer: Observer) -> Dispatcher:
        from flowstone.dispatchers.script.dispatcher import ScriptDispatcher

        return ScriptDispatcher(self.wiring.env, self._redactor)

    def _children(self, lease: Lease, observer: Observer) -> Dispatcher:
        from flowstone.dispatchers.child import ChildDispatcher
        from flowstone.drivers.children import LocalChildRuns

        return ChildDispatcher(LocalChildRuns(_ChildHost(self), observer))

    def of_child(self, row: RunRow, plan: Plan, resolved: Resolved, connections: dict[str, Any]) -> RunWorkshop:
        """The workshop of a nested run: the same wiring, and what is secret here is secret there."""
        self.wiring.write_shims(row, plan)
        own = (*self.wiring.bound_values(plan), *self.wiring.engine_keys(plan))
        secrets = (*self._secrets, *resolved.secrets, *own)
        return RunWorkshop(self.wiring, row, resolved.params, connections, secrets, self._lines, self.run_width)

    def _approvals(self, lease: Lease, observer: Observer) -> Dispatcher:
        from flowstone.dispatchers.approval import ApprovalDispatcher

        store = self.wiring.store_for(self.row.record.dialect)
        return ApprovalDispatcher(store, self.wiring.clock, observer.line, self.redact)

    def _models(self, lease: Lease, observer: Observer) -> Dispatcher:
        from flowstone.dispatchers.llm.dispatcher import LlmDispatcher

        return LlmDispatcher(self.wiring.env, self._redactor)

    def _agents(self, lease: Lease, observer: Observer) -> Dispatcher:
        """Agents run as commands do, below the same guard."""
        from flowstone.dispatchers.agent.dispatcher import AgentDispatcher
        from flowstone.dispatchers.process.dispatcher import ProcessDispatcher
        from flowstone.plan.units import ExecSpec

        commands = self._made.get(ExecSpec)
        if commands is None:
            commands = self._made[ExecSpec] = self._commands(lease, observer)
        assert isinstance(commands, ProcessDispatcher)
        return AgentDispatcher(commands, self.wiring.env)


MAKERS: dict[str, Callable[[RunWorkshop, Lease, Observer], Dispatcher]] = {
    "ExecSpec": RunWorkshop._commands,
    "SleepSpec": RunWorkshop._sleeps,
    "HttpSpec": RunWorkshop._requests,
    "ScriptSpec": RunWorkshop._scripts,
    "ChildSpec": RunWorkshop._children,
    "ApprovalSpec": RunWorkshop._approvals,
    "LlmSpec": RunWorkshop._models,
    "AgentSpec": RunWorkshop._agents,
}
"""What makes the dispatcher of each kind of unit, by the name of its type in `plan/units.py`."""


def require_dispatchers(plan: Plan) -> None:
    """FreezeError that names the steps of a kind that this version cannot dispatch."""
    found = [
        f'"{step.id}" ({type(step.unit.spec).__name__.removesuffix("Spec").lower()})'
        for step in plan.steps
        if step.unit is not None and type(step.unit.spec).__name__ not in MAKERS
    ]
    if found:
        raise FreezeError(f"steps of a kind that this version cannot run: {', '.join(found)}; nothing was started")


class _ChildHost:
    """What the runs of nested workflows need of their parent's workshop (drivers.children.Host)."""

    def __init__(self, workshop: RunWorkshop) -> None:
        from flowstone.formats.registry import dialect_of

        self._workshop = workshop
        self._wiring = workshop.wiring
        self.parent = workshop.row
        self.dialect: Dialect = dialect_of(self.parent.record.dialect)
        self.store = self._wiring.store_for(self.dialect.name)
        self.clock = self._wiring.clock
        self.connections = workshop.connections
        self.run_width = workshop.run_width

    @property
    def host_width(self) -> int | None:
        return self._wiring.settings.host_concurrency

    def redact(self, value: Any) -> Any:
        return self._workshop.redact(value)

    def workshop(self, row: RunRow, plan: Plan, resolved: Resolved, connections: dict[str, Any]) -> RunWorkshop:
        return self._workshop.of_child(row, plan, resolved, connections)

    def publish(self, state: State, events: Sequence[Event]) -> tuple[str, ...]:
        return self._wiring.project(state, events)


class _Unavailable:
    """Stands for a kind of unit that this version cannot dispatch; starting such a run is refused."""

    def __init__(self, spec: AnySpec) -> None:
        self._kind = type(spec).__name__

    async def perform(self, dispatch: Dispatch) -> Outcome:
        raise FreezeError(f'Step "{dispatch.step}" is of a kind that cannot be dispatched: {self._kind}')

    async def close(self) -> None:
        return None
