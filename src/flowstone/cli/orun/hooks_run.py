"""`orun hooks run BLUEPRINT PHASE`: run the hooks of a phase, once they are shown to be as pinned."""

from __future__ import annotations

import click

from flowstone.cli.errors import Exit
from flowstone.cli.orun.diagnosed import diagnosed
from flowstone.cli.orun.job_plan import LANGUAGE
from flowstone.cli.orun.run import drive, tell_end
from flowstone.cli.runs import given_of


@click.command("run", epilog="Example: orun hooks run service.yaml postCreate")
@click.argument("blueprint")
@click.argument("phase")
@click.option("--connection", "connections", multiple=True, metavar="NAME.FIELD=VALUE", help="Grant a connection.")
def command(blueprint: str, phase: str, connections: tuple[str, ...]) -> None:
    """Run the hooks of BLUEPRINT that belong to PHASE, one after the other.

    Nothing starts unless every hook of the blueprint is as .orun/provenance.lock says. A run that
    stopped goes on with: orun run --resume RUN.
    """
    from flowstone.api import Flowstone
    from flowstone.api.hooks import start_hooks

    given = given_of((), connections)
    with Flowstone(language=LANGUAGE) as flow:
        with diagnosed(flow):
            run_id = start_hooks(flow, blueprint, phase, given).run_id
        report = drive(flow, run_id, given, None, reopen=False)
    raise Exit(tell_end(report.state.plan.name, report, "job"))
