"""`akm task enable|disable|sync|doctor|prune`: the schedules of this machine."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from flowstone.cli import exit_codes
from flowstone.cli.common import output_options
from flowstone.cli.render.formats import Format, Output, emit

if TYPE_CHECKING:
    from flowstone.schedule.sync import Outcome


@click.command("enable", epilog="Examples: akm task enable nightly · akm task enable workflows/release")
@click.argument("target", metavar="TASK")
@click.option("--bundle", metavar="NAME", help="The bundle that the task is in.")
@click.option("--rebind", is_flag=True, help="Bind a row of another program to this one.")
@output_options()
def enable(target: str, bundle: str | None, rebind: bool, output: Output) -> int:
    """Have the schedule of TASK, or of a workflow by its ref, obeyed on this machine."""
    from flowstone.api import Flowstone
    from flowstone.api.scheduling import enable as enabled

    with Flowstone() as flow:
        ref, outcome = enabled(flow, target, bundle=bundle, rebind=rebind)
    return _told({"ref": ref, "enabled": True}, outcome, output, "task-enable")


@click.command("disable", epilog="Example: akm task disable nightly")
@click.argument("target", metavar="TASK")
@click.option("--bundle", metavar="NAME", help="The bundle that the task is in.")
@output_options()
def disable(target: str, bundle: str | None, output: Output) -> int:
    """Have the schedule of TASK not obeyed on this machine any more."""
    from flowstone.api import Flowstone
    from flowstone.api.scheduling import disable as disabled

    with Flowstone() as flow:
        ref, outcome = disabled(flow, target, bundle=bundle)
    return _told({"ref": ref, "enabled": False}, outcome, output, "task-disable")


@click.command("sync", epilog="Example: akm task sync --dry-run --format text")
@click.option("--dry-run", is_flag=True, help="Change nothing, tell what would be changed.")
@click.option("--rebind", is_flag=True, help="Bind rows of another program to this one.")
@click.option("--bundle", metavar="NAME", help="The schedules of one bundle only.")
@output_options()
def sync(dry_run: bool, rebind: bool, bundle: str | None, output: Output) -> int:
    """Bring this machine's scheduler in order with what is enabled, one row at a time.

    Only rows that this installation wrote are changed. Ends with 1 if one could not be brought in
    order, and with --dry-run also if one would be removed.
    """
    from flowstone.api import Flowstone
    from flowstone.api.scheduling import SyncOptions, synchronise

    with Flowstone() as flow:
        outcome = synchronise(flow, SyncOptions(dry=dry_run, rebind=rebind, bundle=bundle))
    return _told({"dryRun": dry_run}, outcome, output, "task-sync")


@click.command("doctor", epilog="Example: akm task doctor --format text")
@output_options()
def doctor(output: Output) -> int:
    """Tell how the schedules of this machine stand. Ends with 4 if something is not as it should be."""
    from flowstone.api import Flowstone
    from flowstone.api.scheduling import doctor as examined

    with Flowstone() as flow:
        view = examined(flow)
    emit(view, output, {Format.TEXT: _doctor_text})
    return exit_codes.OK if view["ok"] else exit_codes.UNHEALTHY


@click.command("prune", epilog="Examples: akm task prune · akm task prune --yes · akm task prune --id old,older --yes")
@click.option("--yes", is_flag=True, help="Take it away; without this it is only told.")
@click.option("--id", "ids", metavar="A,B", help="Only what is left of these tasks.")
@output_options()
def prune(yes: bool, ids: str | None, output: Output) -> None:
    """Clear away what is left of tasks whose files are gone: enabling, rows and history."""
    from flowstone.api import Flowstone
    from flowstone.api.pruning import clear, leftovers

    names = [name.strip() for name in (ids or "").split(",") if name.strip()]
    with Flowstone() as flow:
        found = leftovers(flow, names)
        if yes and found:
            clear(flow, found)
    rows = [{"ref": one.ref, "enabled": one.enabled, "rows": list(one.rows), "records": one.records} for one in found]
    view = {"ok": True, "pruned": yes, "leftovers": rows, "shape": "task-prune"}
    emit(view, output, {Format.TEXT: _leftovers_text})


def _told(view: dict[str, Any], outcome: Outcome, output: Output, shape: str) -> int:
    kinds = {"added": "add", "updated": "update", "removed": "remove", "unchanged": "keep"}
    rows = {word: [{"key": row.key, "cron": row.cron} for row in _of(outcome, kind)] for word, kind in kinds.items()}
    failures = [{"ref": one.ref, "code": one.code, "message": one.message} for one in outcome.failures]
    pending = bool(view.get("dryRun")) and bool(rows["removed"])
    ok = not failures and not pending
    emit({"ok": ok, **view, **rows, "failures": failures, "shape": shape}, output, {Format.TEXT: _rows_text})
    return exit_codes.OK if ok else exit_codes.FAILED


def _of(outcome: Outcome, kind: str) -> list[Any]:
    return [action.row for action in outcome.actions if action.kind == kind]


def _rows_text(view: dict[str, Any]) -> str:
    would = "would be " if view.get("dryRun") else ""
    lines = [
        f"{would}{word}: {row['key']}  {row['cron']}" for word in ("added", "updated", "removed") for row in view[word]
    ]
    lines += [f"failed: {one['message']}" for one in view["failures"]]
    return "\n".join(lines) or "Nothing to change."


def _doctor_text(view: dict[str, Any]) -> str:
    lines = [f"scheduler: {view['scheduler']}", f"missed times: {view['missed']}"]
    lines += [f"enabled: {ref}" for ref in view["enabled"]]
    lines += [f"problem: {one['message']}" for one in view["findings"]]
    return "\n".join(lines)


def _leftovers_text(view: dict[str, Any]) -> str:
    done = "cleared away" if view["pruned"] else "left (--yes clears it away)"
    return "\n".join(f"{row['ref']}: {done}" for row in view["leftovers"]) or "Nothing is left of tasks that are gone."
