"""`orun hooks pin BLUEPRINT`: write down which workflows its hooks run, by digest."""

from __future__ import annotations

import click

from flowstone.cli.orun.diagnosed import diagnosed
from flowstone.cli.render.terminal import neutral, say


@click.command("pin", epilog="Example: orun hooks pin service.yaml")
@click.argument("blueprint")
def command(blueprint: str) -> None:
    """Check the hooks of the file BLUEPRINT and pin them in .orun/provenance.lock."""
    from flowstone.api import Flowstone
    from flowstone.api.hooks import LOCK, pin_hooks

    with Flowstone() as flow, diagnosed(flow):
        pins = pin_hooks(flow, blueprint)
    say("".join(f"{neutral(f'{pin.id} [{pin.phase}] {pin.workflow} {pin.digest}')}\n" for pin in pins))
    say(f"written: {LOCK}\n")
