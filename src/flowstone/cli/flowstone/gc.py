"""`flowstone gc`: remove runs, worktrees and crash reports that nobody needs any more."""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from flowstone.cli import exit_codes
from flowstone.cli.errors import Exit
from flowstone.cli.flowstone.confirming import confirm
from flowstone.cli.render.terminal import neutral, say
from flowstone.cli.runs import now_ms
from flowstone.errors import InputError

if TYPE_CHECKING:
    from flowstone.api.housekeeping import Cleared, Rubbish

_AGES = {"m": 60_000, "h": 3_600_000, "d": 86_400_000, "w": 604_800_000}
_SIZES = {"K": 1_000, "M": 1_000_000, "G": 1_000_000_000}


@click.command("gc", epilog="Example: flowstone gc --older-than 14d --dry-run")
@click.option("--older-than", default="30d", show_default=True, metavar="AGE", help="What ended so long ago goes.")
@click.option("--max-size", metavar="SIZE", help="Of younger runs the oldest go too, until all fit: 500M, 2G.")
@click.option("--failed", is_flag=True, help="Failed runs too, though they could be resumed.")
@click.option("--dry-run", is_flag=True, help="Only list what would go.")
@click.option("-y", "--yes", is_flag=True, help="Do not ask.")
def command(older_than: str, max_size: str | None, failed: bool, dry_run: bool, yes: bool) -> None:
    """Remove ended runs, the worktrees that they left and old crash reports.

    Runs that are active, held or (without --failed) failed stay: they can be resumed.
    """
    from flowstone.api import Flowstone
    from flowstone.api.housekeeping import Rules

    size = None if max_size is None else _amount(max_size, _SIZES, "size", "500M or 2G")
    rules = Rules(_amount(older_than, _AGES, "age", "12h, 30d or 8w"), size, failed)
    with Flowstone() as flow:
        found = flow.rubbish(rules)
        for item in found:
            say(neutral(_line(item, now_ms())) + "\n")
        if not found:
            say("nothing to remove\n")
        elif dry_run:
            say(f"{_sum(found)} would go\n")
        elif not yes:
            confirm(f"Remove {_sum(found)}?", yes=False)
        if not dry_run:
            _tell(flow.clear(found))


def _tell(cleared: Cleared) -> None:
    for item, why in cleared.kept:
        say(neutral(f"kept {item.kind} {item.name}: {why}") + "\n", sys.stderr)
    if cleared.removed or cleared.blobs:
        blobs = f", {cleared.blobs:,} large values" if cleared.blobs else ""
        say(f"removed {_sum(cleared.removed)}{blobs}: {_spelt(cleared.freed)}\n")
    if cleared.kept:
        raise Exit(exit_codes.FAILED)


def _line(item: Rubbish, now: int) -> str:
    days = max(0, now - item.at) // 86_400_000
    return f"{item.kind:12}  {item.name}  {_spelt(item.size):>9}  {days} days old  {item.title}".rstrip()


def _sum(found: Sequence[Rubbish]) -> str:
    counts: dict[str, int] = {}
    for item in found:
        counts[item.kind] = counts.get(item.kind, 0) + 1
    parts = [f"{count:,} {kind}{'' if count == 1 else 's'}" for kind, count in counts.items()]
    return ", ".join(parts) or "nothing"


def _spelt(size: int) -> str:
    for unit, factor in reversed(_SIZES.items()):
        if size >= factor:
            return f"{size / factor:.1f} {unit}B"
    return f"{size} B"


def _amount(text: str, units: dict[str, int], noun: str, examples: str) -> int:
    match = re.fullmatch(r"(\d{1,9})([a-zA-Z])", text.strip())
    if match is None or match[2] not in units:
        raise InputError(f'"{text}" is no {noun}: write for instance {examples}.')
    return int(match[1]) * units[match[2]]
