"""`orun hooks verify [BLUEPRINT]`: compare the lock with the files as they are."""

from __future__ import annotations

import click

from flowstone.cli.orun.diagnosed import diagnosed
from flowstone.cli.render.terminal import say


@click.command("verify", epilog="Example: orun hooks verify")
@click.argument("blueprint", required=False)
def command(blueprint: str | None) -> None:
    """Show that every hook of BLUEPRINT, or of all that are pinned, is as it was pinned. Ends with 1 if one is not."""
    from flowstone.api import Flowstone
    from flowstone.api.hooks import verify_hooks

    with Flowstone() as flow, diagnosed(flow):
        pins = verify_hooks(flow, blueprint)
    say(f"ok: {len(pins)} hook{'' if len(pins) == 1 else 's'} as pinned\n")
