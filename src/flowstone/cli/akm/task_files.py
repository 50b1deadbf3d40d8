"""`akm task add|validate|list`: task files, written, checked and told."""

from __future__ import annotations

from typing import Any

import click

from flowstone.cli import exit_codes
from flowstone.cli.common import output_options
from flowstone.cli.render.formats import Format, Output, emit
from flowstone.errors import FlowstoneError, InputError, UsageError
from flowstone.values import Json, JsonError, decode_json


@click.command(
    "add",
    epilog='Examples: akm task add nightly --workflow workflows/release --schedule "0 3 * * *"'
    " · akm task add tidy --command 'rm -rf build/tmp' --disabled",
)
@click.argument("name", metavar="ID")
@click.option("--schedule", metavar="CRON", help='When: five fields such as "0 6 * * *", or @daily.')
@click.option("--workflow", metavar="REF", help="Run this workflow.")
@click.option("--prompt", metavar="TEXT", help="Give a model or agent this text, or the command commands/<name>.")
@click.option("--command", "shell", metavar="TEXT", help="Run this shell text.")
@click.option("--params", metavar="JSON", help="An object of values; they become inputs with defaults.")
@click.option("--engine", metavar="NAME", help="The engine of a prompt.")
@click.option("--description", metavar="TEXT", help="What the task is for.")
@click.option("--bundle", metavar="NAME", help="The bundle to write it to.")
@click.option("--disabled", is_flag=True, help="Do not enable its schedule on this machine.")
@click.option("--force", is_flag=True, help="Replace an existing task.")
@click.option("--rebind", is_flag=True, help="Bind a row of another program to this one.")
@output_options()
def add(
    name: str, bundle: str | None, disabled: bool, force: bool, rebind: bool, output: Output, **fields: Any
) -> None:
    """Write the task ID, and enable its schedule on this machine."""
    from flowstone.api import Flowstone
    from flowstone.api.task_files import add_task, new_task

    fields["command"] = fields.pop("shell")
    if sum(fields[key] is not None for key in ("workflow", "prompt", "command")) != 1:
        message = "Give exactly one of --workflow, --prompt and --command."
        raise UsageError(message, code="MISSING_REQUIRED_ARGUMENT")
    fields["params"] = _params(fields["params"])
    with Flowstone() as flow:
        ref, path = add_task(flow, name, new_task(fields), bundle=bundle, replace=force)
        view: dict[str, Any] = {"ok": True, "ref": ref, "path": path, "enabled": False}
        if fields["schedule"] is not None and not disabled:
            view |= _enabled(flow, ref, rebind, output)
        elif ref in flow.wiring.activation.enabled():
            _disabled(flow, ref, output)
    emit({**view, "shape": "task-add"}, output)


@click.command("validate", epilog="Example: akm task validate tasks/nightly.yml")
@click.argument("path", metavar="FILE")
@output_options()
def validate(path: str, output: Output) -> int:
    """Tell what FILE is: valid, converts (an older version), blocked, invalid or not-a-task."""
    from flowstone.api import Flowstone, diagnostics_json
    from flowstone.api.tasks import validate as validated

    with Flowstone() as flow:
        verdict = validated(flow, path)
    view = {
        "ok": verdict.ok,
        "path": path,
        "outcome": verdict.outcome,
        "version": verdict.version,
        "diagnostics": diagnostics_json(path, verdict.diagnostics),
        "shape": "task-validate",
    }
    emit(view, output, {Format.TEXT: _verdict_text})
    return exit_codes.OK if verdict.ok else exit_codes.FAILED


@click.command("list", epilog="Example: akm task list --format text")
@output_options()
def list_(output: Output) -> None:
    """List the tasks of all bundles with their targets and schedules."""
    from flowstone.api import Flowstone
    from flowstone.api.task_views import list_tasks

    with Flowstone() as flow:
        rows = list_tasks(flow)
    emit({"ok": True, "tasks": rows, "shape": "task-list"}, output, {Format.TEXT: _list_text})


def _enabled(flow: Any, ref: str, rebind: bool, output: Output) -> dict[str, Any]:
    """Enable a new task. A machine without a scheduler keeps the file, and says what is missing."""
    from flowstone.api.scheduling import enable

    try:
        _, outcome = enable(flow, ref, rebind=rebind)
    except FlowstoneError as error:
        output.warn(f"{ref} is written and enabled, but not scheduled: {error.message}")
        return {"enabled": True, "scheduled": False, "problem": error.message}
    for failure in outcome.failures:
        output.warn(failure.message)
    return {"enabled": True, "scheduled": not outcome.failures}


def _disabled(flow: Any, ref: str, output: Output) -> None:
    """A task that took the place of an enabled one and is not to be obeyed here."""
    from flowstone.api.scheduling import disable

    try:
        disable(flow, ref)
    except FlowstoneError as error:
        output.warn(f"{ref} is not enabled any more; its rows cannot be taken away: {error.message}")


def _params(text: str | None) -> dict[str, Json]:
    if text is None:
        return {}
    try:
        value = decode_json(text)
    except JsonError as error:
        raise InputError(f"--params takes a JSON object: {error}", code="INVALID_JSON_ARGUMENT") from None
    if not isinstance(value, dict):
        raise InputError("--params takes a JSON object.", code="INVALID_JSON_ARGUMENT")
    return value


def _verdict_text(view: dict[str, Any]) -> str:
    lines = [f"{view['path']}: {view['outcome']}"]
    lines += [f"  {one['line']}:{one['column']} {one['message']}" for one in view["diagnostics"]]
    return "\n".join(lines)


def _list_text(view: dict[str, Any]) -> str:
    lines = []
    for row in view["tasks"]:
        if "problem" in row:
            lines.append(f"{row['ref']}  cannot be read: {row['problem']}")
            continue
        times = ", ".join(row["schedules"]) or "no schedule"
        lines.append(f"{row['ref']}  {row['target']}  {times}" + ("  enabled" if row["enabled"] else ""))
    return "\n".join(lines) or "There are no tasks."
