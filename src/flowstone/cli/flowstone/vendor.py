"""`flowstone vendor [REF…]`: pin remote workflows, with all that they nest, in the working folder."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING

import click

from flowstone.cli import exit_codes
from flowstone.cli.errors import Exit
from flowstone.cli.flowstone.sources import compile_errors_shown
from flowstone.cli.render.terminal import neutral, say
from flowstone.errors import UsageError

if TYPE_CHECKING:
    from flowstone.api import Flowstone
    from flowstone.api.vendoring import Change


@click.command("vendor", epilog="Example: flowstone vendor github:acme/flows@v1.2.0//release.yaml")
@click.argument("refs", nargs=-1, metavar="[REF|FILE]...")
@click.option("--check", is_flag=True, help="Only verify what is pinned; fetches nothing.")
@click.option("--remove", "removed", multiple=True, metavar="REF", help="Pin REF no longer; repeatable.")
@click.option("--diff", is_flag=True, help="Show the changed lines of each file.")
def command(refs: tuple[str, ...], check: bool, removed: tuple[str, ...], diff: bool) -> None:
    """Fetch each REF with the files that it nests, and pin their bytes in flowstone.lock.

    REF is github:owner/repo[@ref]//path or an https:// address; of a FILE the remote workflows that
    it nests are pinned. Without any, what is pinned already is fetched anew. The copies lie in
    flowstone.vendor, and a run of REF uses them, offline too, as long as they are unchanged.
    """
    from flowstone.api import Flowstone

    if check and (refs or removed or diff):
        raise UsageError("--check verifies all that is pinned, and takes nothing else")
    with Flowstone() as flow:
        if check:
            _check(flow)
            return
        flow.wiring.on_fetch = lambda text: say(f"{neutral(text)}\n", sys.stderr)
        with compile_errors_shown(flow):
            changes = flow.vendoring.vendor(refs, removed)
    lines = [line for change in changes for line in _told(change, diff)]
    say("".join(f"{neutral(line)}\n" for line in lines or ["nothing has changed"]))


def _check(flow: Flowstone) -> None:
    problems = flow.vendoring.check()
    if problems:
        say("".join(f"{neutral(problem)}\n" for problem in problems), sys.stderr)
        raise Exit(exit_codes.FAILED)
    count = len(flow.wiring.remotes.vendored.lock.files)
    say(f"ok: {count} pinned file{'' if count == 1 else 's'}\n")


def _told(change: Change, diff: bool) -> Iterator[str]:
    """A line for a file that is new, gone or another one; below it what has changed."""
    before, after = change.before, change.after
    if before is None or after is None:
        yield f"{'+' if before is None else '-'} {_spelt(change)}"
    elif before.digest != after.digest:
        changed = _changed_lines(change)
        added = sum(line.startswith("+") for line in changed)
        yield f"~ {_spelt(change)}: +{added} -{sum(line.startswith('-') for line in changed)} lines"
        if diff:
            yield from (f"    {line}" for line in changed)
    elif before.commit != after.commit:
        yield f"= {_spelt(change)}: the same bytes"


def _spelt(change: Change) -> str:
    commits = [pin.commit[:12] for pin in (change.before, change.after) if pin is not None and pin.commit]
    return change.reference + (f" ({' → '.join(dict.fromkeys(commits))})" if commits else "")


def _changed_lines(change: Change) -> list[str]:
    import difflib

    lines = difflib.unified_diff(change.old_text.splitlines(), change.new_text.splitlines(), n=2, lineterm="")
    return list(lines)[2:]
