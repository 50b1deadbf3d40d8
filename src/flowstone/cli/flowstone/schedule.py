"""`flowstone schedule FILE…`: run files at their times, in the foreground."""

from __future__ import annotations

import sys
from datetime import timedelta

import click

from flowstone.cli import exit_codes
from flowstone.cli.render.terminal import neutral, say
from flowstone.cli.runs import SIGNALS, milliseconds


@click.command("schedule", epilog="Example: flowstone schedule nightly.yml --missed all --window 6h")
@click.argument("files", nargs=-1, required=True, metavar="FILE...")
@click.option(
    "--missed",
    type=click.Choice(["skip", "once", "all"]),
    help="Missed times: run none, one for all of them, or each; by default scheduler.missed, else once.",
)
@click.option("--window", default="24h", show_default=True, metavar="TIME", help="How old a missed time is run by all.")
@click.option("--tz", "zone", metavar="ZONE", help="The zone of the schedules; by default this machine's.")
def command(files: tuple[str, ...], missed: str | None, window: str, zone: str | None) -> int:
    """Run the workflows and tasks of FILEs at their times until SIGTERM or Ctrl-C.

    For places without cron. Started twice for the same file, each time is still run once. A time is
    missed when nothing looked for more than a minute: the machine slept, or this command was not
    running. While a run goes on, further times of its table are skipped (with --missed all: wait).
    """
    from flowstone.api import Flowstone
    from flowstone.api.scheduling import missed_rule
    from flowstone.api.timing import Bounds, run_scheduler
    from flowstone.cli.flowstone.sources import compile_errors_shown
    from flowstone.ports.activation import Missed

    old = timedelta(milliseconds=milliseconds(window))
    with Flowstone() as flow, compile_errors_shown(flow):
        bounds = Bounds(zone, missed_rule(flow) if missed is None else Missed(missed), old)
        _say(f"{len(files)} file{'' if len(files) == 1 else 's'}; missed times: {bounds.missed}")
        received = run_scheduler(flow, files, bounds, _say)
    _say("ended in order")
    return exit_codes.OK if received == "SIGTERM" else SIGNALS.get(f"signal:{received}", exit_codes.OK)


def _say(text: str) -> None:
    say(f"schedule: {neutral(text)}\n")
    sys.stdout.flush()
