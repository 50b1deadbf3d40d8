"""`flowstone status [RUN]`: where a run stands, as text, JSON or a page; `--watch` follows it."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING

import click

from flowstone.cli.flowstone.choice import run_choice
from flowstone.cli.render.terminal import clipped, neutral, say, say_document, terminal_of
from flowstone.cli.runs import chosen_run, now_ms

if TYPE_CHECKING:
    from flowstone.api import Flowstone, RunView

INTERVAL = 0.5
"""Seconds between two looks of `--watch`."""


@click.command("status", epilog="Example: flowstone status --last --units")
@run_choice
@click.option("--units", is_flag=True, help="Show every unit, with the reason and the output of a failure.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
@click.option("--format", "form", type=click.Choice(["text", "json", "html"]), help="How to print it; html is a page.")
@click.option("--watch", is_flag=True, help="Follow the run until it ends.")
def command(run: str | None, last: bool, units: bool, as_json: bool, form: str | None, watch: bool) -> None:
    """Show where a run stands. Without RUN it is the newest one of this folder."""
    from flowstone.api import Flowstone

    form = form or ("json" if as_json else "text")
    with Flowstone() as flow:
        chosen = chosen_run(flow, run, last)
        if watch:
            _follow(flow, chosen, units)
        else:
            tell = say if form == "text" else say_document
            tell(_rendered(flow, flow.status(chosen), form, units))


def _rendered(flow: Flowstone, view: RunView, form: str, units: bool) -> str:
    from flowstone.values import pretty_json
    from flowstone.views import overview

    if form == "json":
        return (
            pretty_json(
                overview.document(
                    view.row, view.state, now_ms(), units=units, driver=view.driver, children=view.children
                )
            )
            + "\n"
        )
    if form == "html":
        from flowstone.views.report import report_page
        from flowstone.views.words import plain_word

        return report_page(view.row, view.state, now_ms(), plain_word)
    lines = overview.text_lines(view.row, view.state, now_ms(), units=units, driver=view.driver, children=view.children)
    if (waiting := flow.waiting().get(view.row.record.id)) is not None:
        lines.insert(1, f"  {waiting.text}")
    return "".join(f"{neutral(line)}\n" for line in lines) + _hint(view)


def _hint(view: RunView) -> str:
    """What to do next with a run that stopped."""
    if view.state.status in ("failed", "held") or view.state.interrupted is not None:
        from flowstone.views.children import stopped_below

        runs = (*stopped_below(view.state, view.children), view.row.record.id)
        return f"go on with: {' && '.join(f'flowstone resume {run}' for run in runs)}\n"
    return ""


def _follow(flow: Flowstone, run: str, units: bool) -> None:
    """Print the run again whenever it has changed: over the old text on a terminal, else behind it."""
    terminal = terminal_of(sys.stdout)
    live = terminal.live
    shown, seen = 0, -1
    while True:
        view = flow.status(run)
        if live or view.state.seq != seen:
            text = _rendered(flow, view, "text", units)
            if live:
                text = _screenful(text, terminal.width, terminal.height)
            say((f"\x1b[{shown}F\x1b[J" if live and shown else "") + text)
            shown, seen = text.count("\n"), view.state.seq
        if not view.state.active or view.state.interrupted is not None or view.driver is None:
            return
        time.sleep(INTERVAL)


def _screenful(text: str, width: int, height: int) -> str:
    """What fits a screen, a row a line, so that it can be drawn over: the end of a longer text."""
    lines = text.splitlines()[-max(1, height - 1) :]
    return "".join(f"{clipped(line, width)}\n" for line in lines)
