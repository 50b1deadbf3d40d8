"""`akm search [WORDS]`: find stored assets by name, description, tags and the words before their parts."""

from __future__ import annotations

from typing import Any

import click

from flowstone.cli.common import output_options
from flowstone.cli.render.formats import Format, Output, emit

LIMIT = 20


@click.command("search", epilog="Examples: akm search release notes · akm search --type command review --format text")
@click.argument("words", nargs=-1)
@click.option("--type", "kind", metavar="TYPE", help="Only assets of this type, such as workflow or command.")
@click.option("--limit", type=click.IntRange(1), default=LIMIT, show_default=True, help="At most so many.")
@output_options()
def command(words: tuple[str, ...], kind: str | None, limit: int, output: Output) -> None:
    """Find the assets in which all WORDS occur, the best first; without words, list them."""
    from flowstone.api import Flowstone
    from flowstone.api.searching import search

    query = " ".join(words)
    with Flowstone() as flow:
        hits = search(flow, query, kind)
    view = {"ok": True, "query": query, "totalCount": len(hits), "hits": hits[:limit], "shape": "search"}
    emit({**view, "schemaVersion": 1}, output, {Format.TEXT: _text})


def _text(envelope: dict[str, Any]) -> str:
    from flowstone.cli.render.terminal import one_line

    rows = envelope["hits"]
    if not rows:
        return "Nothing was found."
    width = max(len(row["ref"]) for row in rows)
    told = ((row["ref"].ljust(width), row.get("description") or row.get("title") or "") for row in rows)
    lines = [one_line(f"{ref}  {text}".rstrip()) for ref, text in told]
    hidden = envelope["totalCount"] - len(rows)
    return "\n".join([*lines, *([f"{hidden} more; --limit shows them."] if hidden else [])])
