"""`akm curate`: the few assets that have to do with a task, with their texts; made for agents."""

from __future__ import annotations

import click

from flowstone.cli.common import output_options
from flowstone.cli.render.formats import Output, emit


@click.command("curate", epilog='Example: akm curate "write the release notes" --type command')
@click.argument("words", nargs=-1, required=True)
@click.option("--type", "types", multiple=True, metavar="TYPE", help="Only assets of this type; may be repeated.")
@click.option("--limit", type=click.IntRange(1, 20), default=3, show_default=True, help="At most so many.")
@output_options()
def command(words: tuple[str, ...], types: tuple[str, ...], limit: int, output: Output) -> None:
    """Show the assets that have most to do with WORDS, a task in plain language; `akm search` finds all."""
    from flowstone.api import Flowstone
    from flowstone.api.showing import curate

    query = " ".join(words)
    with Flowstone() as flow:
        total, rows = curate(flow, query, types, limit)
    emit(
        {"ok": True, "query": query, "totalCount": total, "assets": rows, "shape": "curate", "schemaVersion": 1}, output
    )
