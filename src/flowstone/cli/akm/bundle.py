"""`akm bundle list|create`: the folders in which refs are looked up."""

from __future__ import annotations

from typing import Any

import click

from flowstone.cli.common import output_options
from flowstone.cli.lazy import LazyGroup, Verb
from flowstone.cli.render.formats import Format, Output, emit

_HERE = "flowstone.cli.akm.bundle"
VERBS = {
    "create": Verb(f"{_HERE}:create", "Make a bundle and name it in the configuration."),
    "list": Verb(f"{_HERE}:list_", "List bundles in the order in which refs are looked up."),
}

command = LazyGroup(
    "bundle",
    VERBS,
    help="List and make bundles, the folders of assets (workflows/, commands/, scripts/ and so on).",
    epilog="Example: akm bundle create team ~/team-assets",
)


@click.command("list", epilog="Example: akm bundle list --format text")
@output_options()
def list_(output: Output) -> None:
    """List bundles in the order in which a ref without one is looked up in them."""
    from flowstone.api import Flowstone
    from flowstone.api.bundles import list_bundles

    with Flowstone() as flow:
        rows = list_bundles(flow)
    emit({"ok": True, "bundles": rows, "shape": "bundle-list", "schemaVersion": 1}, output, {Format.TEXT: _text})


@click.command("create", epilog="Examples: akm bundle create team ~/team-assets · akm bundle create ours --project")
@click.argument("name")
@click.argument("path", required=False)
@click.option("--project", is_flag=True, help="Name it in the .akm/config.json of this project.")
@click.option("--default", is_flag=True, help="New assets go to it, and refs are looked up in it first.")
@output_options()
def create(name: str, path: str | None, project: bool, default: bool, output: Output) -> None:
    """Make the bundle NAME in the folder PATH (without it, NAME here); what is there already stays."""
    from flowstone.api import Flowstone
    from flowstone.api.bundles import create_bundle

    with Flowstone() as flow:
        made = create_bundle(flow, name, path, project=project, default=default)
    emit({"ok": True, **made, "shape": "bundle-create", "schemaVersion": 1}, output)


def _text(envelope: dict[str, Any]) -> str:
    from flowstone.cli.render.terminal import one_line

    rows = envelope["bundles"]
    width = max(len(row["name"]) for row in rows)
    return "\n".join(one_line(_line(row, width)) for row in rows)


def _line(row: dict[str, Any], width: int) -> str:
    counts = ", ".join(f"{count} {kind}" for kind, count in row["assets"].items())
    told = counts or ("nothing in it" if row["exists"] else "not there")
    return f"{'*' if row['default'] else ' '} {row['name'].ljust(width)}  {row['path']}  ({told})"
