"""Lists what a command is about to do and asks before it does it."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from flowstone.cli import exit_codes
from flowstone.cli.errors import Exit
from flowstone.cli.render.terminal import neutral, say
from flowstone.errors import UsageError

if TYPE_CHECKING:
    from flowstone.run.seeding import Seed


def confirm_reuse(seeds: Sequence[Seed], run: str, *, yes: bool, quiet: bool) -> None:
    """Show what becomes of each step, and ask; whoever says no leaves with nothing started."""
    if not (yes and quiet):
        width = max(len(seed.step) for seed in seeds)
        rows = [f"  {seed.step:{width}}  {seed.fate:9}  {seed.why}".rstrip() for seed in seeds]
        say(neutral("\n".join([f"taking over run {run}:", *rows])) + "\n", sys.stderr)
    confirm("Start the new run?", yes=yes)


def confirm(question: str, *, yes: bool) -> None:
    """Ask on a terminal; UsageError where nobody can be asked and `--yes` was not given."""
    if yes:
        return
    if not sys.stdin.isatty():
        raise UsageError("Nobody can be asked here, and nothing was done.", hint="Say that it is wanted with --yes.")
    say(f"{question} [y/N] ", sys.stderr)
    if sys.stdin.readline().strip().lower() not in ("y", "yes"):
        say("nothing was done\n", sys.stderr)
        raise Exit(exit_codes.FAILED)
