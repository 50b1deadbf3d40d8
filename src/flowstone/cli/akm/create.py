"""`akm workflow create`: write a new workflow into the default bundle, from a template or a file."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING

import click

from flowstone.cli.common import output_options
from flowstone.cli.render.formats import Output, emit, write_file
from flowstone.diagnostics import errors_of
from flowstone.errors import CompileError, InputError, UsageError

if TYPE_CHECKING:
    from flowstone.api import Flowstone

NAME = re.compile(r"[a-z0-9][a-z0-9._/-]*")


@click.command("create", epilog="Examples: akm workflow create release · akm workflow create release --from draft.md")
@click.argument("name", required=False)
@click.option("--path", "folder", metavar="DIR", help="A folder below workflows/.")
@click.option("--bundle", metavar="NAME", help="The bundle to write it to; without it the default one.")
@click.option("--from", "origin", metavar="FILE", help="Take the text of FILE, which must be a sound workflow.")
@click.option("--force", is_flag=True, help="Replace an existing workflow (with --from or --reset).")
@click.option("--reset", is_flag=True, help="Use the template, also over an existing workflow (with --force).")
@click.option("--print", "print_only", is_flag=True, help="Print the template and write nothing.")
@output_options()
def command(
    name: str | None,
    folder: str | None,
    bundle: str | None,
    origin: str | None,
    force: bool,
    output: Output,
    reset: bool,
    print_only: bool,
) -> None:
    """Write a new workflow NAME."""
    from flowstone.api import Flowstone
    from flowstone.cli.render.formats import deliver

    if print_only:
        deliver(template(name or "my-workflow"), output)
        return
    if name is None:
        raise UsageError("Missing required positional argument: NAME", code="MISSING_REQUIRED_ARGUMENT")
    if force and origin is None and not reset:
        raise InputError(
            "--force refuses to overwrite a workflow with the template.",
            hint="Name the new text with --from FILE, or say --reset to start from the template again.",
        )
    path_name = asset_name(name, folder)
    with Flowstone() as flow:
        root = _root(flow, bundle)
        text = template(name) if origin is None else _sound_text(flow, origin)
        path = os.path.join(root, "workflows", *path_name.split("/")) + ".md"
        _refuse_existing(path, path_name, force)
        _write(root, path, text)
        ref = f"workflows/{path_name}" if bundle is None else f"{bundle}//workflows/{path_name}"
        emit({"ok": True, "ref": ref, "path": path, "stashDir": root}, output)


def _root(flow: Flowstone, bundle: str | None) -> str:
    settings = flow.wiring.settings
    if bundle is None:
        return settings.bundle.root
    roots = {one.name: one.root for one in settings.bundles}
    if bundle not in roots:
        raise InputError(f'There is no bundle "{bundle}".', hint=f"Those that there are: {', '.join(roots)}.")
    return roots[bundle]


def asset_name(name: str, folder: str | None) -> str:
    """The name below workflows/; InputError for one that cannot be a ref (akm facts 31.1)."""
    flat = name.removesuffix(".md")
    if "/" in flat:
        raise InputError(
            f'The name "{name}" must be flat.', hint="Name the folder with --path: akm workflow create b --path a"
        )
    full = f"{folder.strip('/')}/{flat}" if folder else flat
    parts = full.split("/")
    if not NAME.fullmatch(full) or ".." in parts or "." in parts or "" in parts:
        raise InputError(
            f'The name "{full}" must start with a lower-case letter or digit and go on with'
            " lower-case letters, digits, dots, dashes and underscores."
        )
    return full


def template(name: str) -> str:
    """The template of a new workflow, dated today."""
    import datetime

    from flowstone.api import workflow_template

    return workflow_template(name, datetime.date.today().isoformat())


def _sound_text(flow: Flowstone, origin: str) -> str:
    """The text of a file that compiles; CompileError otherwise."""
    target = os.path.join(flow.wiring.cwd, origin)
    workflow = flow.compile(target)
    errors = errors_of(workflow.diagnostics)
    if errors:
        raise CompileError(origin, errors)
    with open(target, encoding="utf-8", newline="") as file:
        return file.read()


def _refuse_existing(path: str, name: str, force: bool) -> None:
    if os.path.lexists(path) and not force:
        raise UsageError(
            f'Workflow "{name}" already exists. Re-run with --force to overwrite it.',
            code="RESOURCE_ALREADY_EXISTS",
            hint="--force needs --from FILE or --reset.",
        )


def _write(root: str, path: str, text: str) -> None:
    """Write the file, made with its folders; one that a link would lead outside the bundle is refused."""
    folder = os.path.dirname(path)
    try:
        os.makedirs(folder, exist_ok=True)
    except OSError as error:
        raise UsageError(f"{folder} cannot be made: {error.strerror}") from None
    real = os.path.realpath(root)
    if os.path.commonpath([real, os.path.realpath(path)]) != real:
        raise UsageError(f"{path} lies outside its bundle.", code="PATH_ESCAPE_VIOLATION")
    write_file(path, text)
