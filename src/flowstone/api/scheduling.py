"""Schedules of this machine: enabling them, bringing the machine's scheduler in order, and telling how it stands."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import msgspec

from flowstone.api.tasks import SOURCE, find_task, task_ref
from flowstone.errors import ConfigError, FlowstoneError, InputError, LeaseHeld, NotFound
from flowstone.ports.activation import Missed, Row, Timetable, Unschedulable

if TYPE_CHECKING:
    from flowstone.api import Flowstone
    from flowstone.schedule.rows import Binding, Scheduled
    from flowstone.schedule.sync import Failure, Outcome

LOCATING = (
    "AKM_CONFIG_DIR", "AKM_DATA_DIR", "AKM_STATE_DIR", "AKM_CACHE_DIR", "AKM_BUNDLE_DIR",
    "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME",
)  # fmt: skip
"""Variables that say where configuration and state lie: a row carries those that are set."""


class Wanted(msgspec.Struct, frozen=True):
    """The rows that should be there, how many words of each are its program, and what went wrong."""

    rows: tuple[Row, ...]
    programs: dict[str, int]
    failures: tuple[Any, ...]
    unreadable: tuple[str, ...]


class SyncOptions(msgspec.Struct, frozen=True):
    """`only` bounds a synchronisation to refs, `bundle` to those of one bundle."""

    dry: bool = False
    rebind: bool = False
    bundle: str | None = None
    only: tuple[str, ...] = ()

    def covers(self, ref: str) -> bool:
        if self.bundle is not None and not ref.startswith(f"{self.bundle}//"):
            return False
        return not self.only or ref in self.only


def scheduled_ref(flow: Flowstone, target: str, bundle: str | None = None) -> str:
    """The canonical ref of a task (by id or ref) or of a workflow (by ref) that has a schedule."""
    if target.rpartition("//")[2].startswith("workflows/"):
        if bundle is not None and "//" not in target:
            target = f"{bundle}//{target}"
        return flow.wiring.catalog.find(target).ref
    return find_task(flow, target, bundle).ref


def enable(flow: Flowstone, target: str, *, bundle: str | None = None, rebind: bool = False) -> tuple[str, Outcome]:
    """Have a schedule obeyed on this machine, and put its rows in place."""
    ref = scheduled_ref(flow, target, bundle)
    if not scheduled_of(flow, ref).tables:
        raise InputError(f"{ref} has no schedule.", hint="Add one to the file, such as a schedule of 0 6 * * *.")
    _refuse_project(flow, ref)
    flow.wiring.activation.change(lambda refs: (*refs, ref))
    return ref, synchronise(flow, SyncOptions(rebind=rebind, only=(ref,)))


def _refuse_project(flow: Flowstone, ref: str) -> None:
    """A schedule belongs to the machine, which must find its bundle from any folder."""
    for bundle in flow.wiring.settings.bundles:
        if bundle.origin == "project" and ref.startswith(f"{bundle.name}//"):
            raise InputError(
                f"{ref} is in a bundle of a project, which is seen from the folders of that project only.",
                hint=f"Name it in your own configuration: akm config set bundles.{bundle.name}.path {bundle.root}",
            )


def disable(flow: Flowstone, target: str, *, bundle: str | None = None) -> tuple[str, Outcome]:
    """Have a schedule not obeyed here any more, even one whose file is gone, and take its rows away."""
    try:
        ref = scheduled_ref(flow, target, bundle)
    except FlowstoneError:
        ref = _enabled_ref(flow, target, bundle)
    flow.wiring.activation.change(lambda refs: tuple(one for one in refs if one != ref))
    return ref, synchronise(flow, SyncOptions(only=(ref,)))


def synchronise(flow: Flowstone, options: SyncOptions) -> Outcome:
    """Bring the scheduler's rows in order with what is enabled, one row at a time.

    LeaseHeld while another process does the same; StoreError when the scheduler cannot be used.
    """
    from flowstone.schedule.sync import apply, plan_actions

    timetable = timetable_of(flow)
    with _alone(flow):
        wanted = _wanted(flow, options)
        installed = [row for row in timetable.rows() if options.covers(row.ref)]
        actions = plan_actions(wanted.rows, installed, wanted.programs, rebind=options.rebind, keep=wanted.unreadable)
        return apply(actions, timetable, wanted.failures, dry=options.dry)


def timetable_of(flow: Flowstone) -> Timetable:
    """The scheduler of this machine, as configured."""
    from flowstone.schedule.registry import Host, timetable_of

    paths = flow.wiring.paths
    settings = _settings(flow)
    return timetable_of(
        Host(
            env=flow.wiring.env,
            home=paths.home,
            platform=sys.platform,
            owner=owner_of(paths.config),
            missed=missed_rule(flow),
            backend=settings.get("backend"),
        )
    )


def missed_rule(flow: Flowstone) -> Missed:
    """The rule for missed times that is configured, else `once`."""
    return Missed(_settings(flow).get("missed", Missed.ONCE))


def owner_of(config: str) -> str:
    """The mark of an installation: rows of another configuration folder are another's."""
    from flowstone.values import sha256_hex

    return sha256_hex(os.fsencode(os.path.realpath(config)))[:8]


def scheduled_of(flow: Flowstone, ref: str) -> Scheduled:
    """The time tables of an enabled ref and the command that its rows run; FlowstoneError for an unsound source."""
    from flowstone.schedule.rows import Scheduled, Timed

    bundle = ref.rpartition("//")[0]
    root = next((one.root for one in flow.wiring.catalog.bundles if one.name == bundle), None)
    if root is None:
        raise NotFound(f'There is no bundle "{bundle}" any more.')
    if "workflows/" in ref:
        plan = flow.compiled_plan(ref)
        tables = tuple(Timed(trigger.cron) for trigger in plan.triggers if trigger.cron is not None)
        command: tuple[str, ...] = ("workflow", "run", ref, "--skip-if-locked")
    else:
        found = find_task(flow, ref)
        tables = tuple(Timed(schedule.cron, schedule.inputs) for schedule in found.task.schedules)
        command = ("task", "run", found.id, "--bundle", bundle, "--scheduled")
    return Scheduled(ref, command, os.path.realpath(root), tables)


def binding_of(flow: Flowstone) -> Binding:
    """What rows start: this very program, and the variables that lead it to the same configuration."""
    from flowstone.schedule.rows import Binding

    env = [(name, flow.wiring.env[name]) for name in LOCATING if flow.wiring.env.get(name)]
    home = flow.wiring.paths.home
    if home != os.path.expanduser(f"~{_user()}"):
        env.insert(0, ("HOME", home))
    return Binding(tuple(_program(flow)), (SOURCE, *env))


def doctor(flow: Flowstone) -> dict[str, Any]:
    """How the schedules of this machine stand: the scheduler, what is enabled, and what is not as it should be."""
    from flowstone.schedule.sync import Kind

    timetable = timetable_of(flow)
    problem = timetable.problem()
    enabled = flow.wiring.activation.enabled()
    findings: list[dict[str, str]] = []
    if problem is not None:
        findings.append({"code": "SCHEDULER_UNAVAILABLE", "message": problem})
    else:
        outcome = synchronise(flow, SyncOptions(dry=True))
        findings += [{"code": failure.code, "message": failure.message} for failure in outcome.failures]
        for kind, what in ((Kind.ADD, "is missing"), (Kind.UPDATE, "is out of date"), (Kind.REMOVE, "is left over")):
            findings += [
                {"code": "ROW_OUT_OF_ORDER", "message": f"{row.key}: its row {what}; akm task sync mends it"}
                for row in outcome.of(kind)
            ]
    return {
        "ok": not findings,
        "scheduler": timetable.name,
        "available": problem is None,
        "missed": timetable.missed,
        "enabled": list(enabled),
        "program": list(_program(flow)),
        "findings": findings,
        "shape": "task-doctor",
    }


def _wanted(flow: Flowstone, options: SyncOptions) -> Wanted:
    from flowstone.schedule.rows import rows_of
    from flowstone.schedule.sync import Failure

    binding = binding_of(flow)
    rows: list[Row] = []
    programs: dict[str, int] = {}
    failures: list[Failure] = []
    unreadable: list[str] = []
    for ref in flow.wiring.activation.enabled():
        if not options.covers(ref):
            continue
        try:
            made = rows_of(scheduled_of(flow, ref), binding)
        except NotFound as error:
            failures.append(Failure(ref, error.code, f"{ref} is enabled and cannot be found: {error.message}"))
            continue
        except (FlowstoneError, Unschedulable) as error:
            code = error.code if isinstance(error, FlowstoneError) else "UNSCHEDULABLE"
            failures.append(Failure(ref, code, f"{ref}: {error}"))
            unreadable.append(ref)
            continue
        rows += made
        programs |= {row.key: len(binding.program) for row in made}
    return Wanted(tuple(rows), programs, tuple(failures), tuple(unreadable))


def _enabled_ref(flow: Flowstone, target: str, bundle: str | None) -> str:
    """The enabled ref that a target means, whose file need not exist."""
    wanted = target if "workflows/" in target else task_ref(target, bundle)
    enabled = flow.wiring.activation.enabled()
    matches = [ref for ref in enabled if wanted == ref or ("//" not in wanted and ref.endswith(f"//{wanted}"))]
    if len(matches) != 1:
        names = ", ".join(enabled) or "nothing"
        raise NotFound(f"{target} is not enabled here.", hint=f"Enabled: {names}.")
    return matches[0]


def _program(flow: Flowstone) -> Sequence[str]:
    """The installed command where it stands beside this interpreter, else this very program by its modules."""
    installed = os.path.join(os.path.dirname(sys.executable), "akm")
    own = not flow.wiring.env.get("PYTHONPATH") and os.access(installed, os.X_OK) and _is_ours(installed)
    return [installed] if own else flow.wiring.program("akm")


def _user() -> str:
    """The user whose home folder a scheduler takes, whatever HOME says here."""
    import pwd

    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        return ""


def _is_ours(path: str) -> bool:
    try:
        with open(path, "rb") as file:
            return b"flowstone" in file.read(4096)
    except OSError:
        return False


@contextmanager
def _alone(flow: Flowstone) -> Iterator[None]:
    """Nobody else brings this scheduler in order meanwhile."""
    from flowstone.stores.lease import take_lease

    folder = os.path.join(flow.wiring.paths.data, "flowstone", "schedule")
    try:
        lease = take_lease(folder, "sync", f"pid {os.getpid()}")
    except LeaseHeld as error:
        message = f"{error.holder} is bringing the schedules of this machine in order already."
        held = LeaseHeld(message, holder=error.holder, hint="Wait for it to end.")
        held.code = "MAINTENANCE_BARRIER_BUSY"
        raise held from None
    try:
        yield
    finally:
        lease.release()


def _settings(flow: Flowstone) -> dict[str, Any]:
    document = flow.wiring.settings.document
    found = document.get("scheduler") if isinstance(document, dict) else None
    if found is not None and not isinstance(found, dict):
        raise ConfigError("scheduler must be an object.")
    return found or {}
