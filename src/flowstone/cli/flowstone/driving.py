"""What `run` and `resume` share: their options, and a drive with its progress and its end."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import click

from flowstone.cli.runs import ended_with, keep_what_is_there, milliseconds, now_ms

if TYPE_CHECKING:
    from flowstone.api import Flowstone, Given

F = TypeVar("F", bound=Callable[..., Any])


def drive_options(function: F) -> F:
    """Give a verb the options of a drive; its function gets them by name."""
    for option in reversed(_OPTIONS):
        function = option(function)
    return function


def drive_and_tell(
    flow: Flowstone,
    run_id: str,
    given: Given,
    *,
    reopen: bool,
    quiet: bool,
    as_json: bool,
    **bounds: Any,
) -> int:
    """Drive a run to where it gets, with progress and summary; returns the exit code."""
    from flowstone.cli.flowstone.watch import Progress
    from flowstone.views.words import plain_word

    timeout = bounds.pop("timeout")
    options = flow.drive_options(
        timeout_ms=milliseconds(timeout) if timeout else None, **{k: v for k, v in bounds.items() if v}
    )
    progress = Progress(plain_word, quiet=quiet, on_stderr=as_json)
    try:
        keep_what_is_there()
        report = flow.drive(
            run_id,
            given,
            options=options,
            observer=progress.observer,
            reopen=reopen,
            lines=not quiet,
        )
    finally:
        progress.close()
    progress.tell_end(report)
    if as_json:
        from flowstone.cli.render.terminal import say_document
        from flowstone.values import pretty_json
        from flowstone.views.overview import document

        say_document(pretty_json(document(report.row, report.state, now_ms())) + "\n")
    return ended_with(report)


_OPTIONS = [
    click.option("--connection", "connections", multiple=True, metavar="NAME.FIELD=VALUE", help="Grant a connection."),
    click.option("--max-parallel", type=click.IntRange(min=1), help="At most so many units at a time."),
    click.option("--max-steps", type=click.IntRange(min=1), help="Stop when so many steps have ended."),
    click.option("--max-retries", type=click.IntRange(min=0), help="Reopen failed steps so many times."),
    click.option("--timeout", metavar="TIME", help="Stop after a time such as 90s, 10m or 2h; it can be resumed."),
    click.option("-q", "--quiet", is_flag=True, help="No progress and no summary."),
    click.option("--json", "as_json", is_flag=True, help="Print the run as one JSON document; progress on stderr."),
]
