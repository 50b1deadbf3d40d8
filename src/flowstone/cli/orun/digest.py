"""`orun workflow digest FILE`: the SHA-256 of a valid file's bytes."""

from __future__ import annotations

import click

from flowstone.cli.orun.files import checked
from flowstone.cli.render.terminal import say


@click.command("digest", epilog="Example: orun workflow digest release.yaml")
@click.argument("file")
def command(file: str) -> None:
    """Check FILE and print the digest of its bytes."""
    say(f"{checked(file).digest}\n")
