"""`flowstone next FILE`: the next fire times of a workflow or task file."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from flowstone.cli.render.terminal import say

if TYPE_CHECKING:
    from flowstone.api.timing import Fires


@click.command("next", epilog="Example: flowstone next nightly.yml --from 2026-03-07 --count 3 --tz America/New_York")
@click.argument("file")
@click.option("--from", "start", metavar="ISO", help="Behind this time (2026-03-07T12:00:00Z); by default now.")
@click.option("--count", type=click.IntRange(1, 1000), default=5, show_default=True, help="So many times.")
@click.option("--tz", "zone", metavar="ZONE", help="The zone of the schedule; by default this machine's.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
def command(file: str, start: str | None, count: int, zone: str | None, as_json: bool) -> None:
    """Print the next fire times of FILE, one a line, and what changes of the clock do to them.

    Lines that begin with # are remarks: the zone, and each change of the clock that matters.
    """
    from flowstone.api import Flowstone
    from flowstone.api.timing import next_times
    from flowstone.cli.flowstone.sources import compile_errors_shown

    with Flowstone() as flow, compile_errors_shown(flow):
        fires = next_times(flow, file, start, count, zone)
    say(_json(fires) if as_json else _text(fires))


def _text(fires: Fires) -> str:
    several = len(fires.crons) > 1
    lines = [f"# {', '.join(fires.crons)} in {fires.zone}"]
    lines += [f"# {note}" for note in fires.notes]
    lines += [moment.isoformat() + (f"  {cron}" if several else "") for moment, cron in fires.times]
    return "\n".join(lines) + "\n"


def _json(fires: Fires) -> str:
    from flowstone.values import pretty_json

    times = [{"at": moment.isoformat(), "cron": cron} for moment, cron in fires.times]
    document = {"zone": fires.zone, "schedules": list(fires.crons), "times": times, "notes": list(fires.notes)}
    return pretty_json(document) + "\n"
