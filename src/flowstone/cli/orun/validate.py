"""`orun workflow validate FILE`: check a file and print its digest."""

from __future__ import annotations

import click

from flowstone.cli.orun.files import checked
from flowstone.cli.render.terminal import say


@click.command("validate", epilog="Example: orun workflow validate release.yaml")
@click.argument("file")
def command(file: str) -> None:
    """Check FILE; every mistake is printed."""
    say(f"ok: {file} ({checked(file).digest})\n")
