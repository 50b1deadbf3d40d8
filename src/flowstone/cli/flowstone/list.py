"""`flowstone list`: the runs that can be seen from this folder."""

from __future__ import annotations

import click

from flowstone.cli.render.terminal import one_line, say, say_document


@click.command("list", epilog="Example: flowstone list --active")
@click.option("--active", is_flag=True, help="Only runs that have not ended.")
@click.option("--limit", type=click.IntRange(min=1), default=20, show_default=True, help="At most so many runs.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
def command(active: bool, limit: int, as_json: bool) -> None:
    """List the runs that can be seen from this folder, the newest first."""
    from flowstone.api import Flowstone
    from flowstone.values import pretty_json
    from flowstone.views.overview import run_entry

    with Flowstone() as flow:
        rows = flow.list(active_only=active)[:limit]
        waiting = flow.waiting()
    entries = [run_entry(row) for row in rows]
    if as_json:
        say_document(pretty_json({"runs": entries}) + "\n")
        return
    if not entries:
        say("no runs yet; start one with: flowstone run FILE\n")
    for entry in entries:
        at = f"  at {entry['currentStep']}" if entry["currentStep"] else ""
        at += f'  waits under the limit "{waiting[entry["run"]].limit}"' if entry["run"] in waiting else ""
        title = one_line(str(entry["title"] or entry["ref"]))
        say(f"{entry['run']}  {entry['status']:<9}  {entry['createdAt']}  {title}{at}\n")
