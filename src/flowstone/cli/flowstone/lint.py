"""`flowstone lint FILE…`: every mistake of workflow files, as text, JSON or SARIF."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from flowstone.cli import exit_codes
from flowstone.cli.errors import Exit
from flowstone.cli.render.terminal import say, terminal_of
from flowstone.diagnostics import Diagnostic, Place, Severity, errors_of
from flowstone.errors import FlowstoneError
from flowstone.values import pretty_json

if TYPE_CHECKING:
    from flowstone.api import Flowstone

Found = tuple[str, str, tuple[Diagnostic, ...]]
"""A file, its text and what is wrong with it."""


@click.command("lint", epilog="Example: flowstone lint release.md flows/*.yaml")
@click.argument("files", nargs=-1, required=True, metavar="FILE...")
@click.option(
    "--format",
    "form",
    type=click.Choice(["text", "json", "sarif"]),
    default="text",
    show_default=True,
    help="How to print the mistakes.",
)
def command(files: tuple[str, ...], form: str) -> None:
    """Check workflow files (or refs) for mistakes. Ends with 1 if a file has errors."""
    from flowstone.api import Flowstone

    with Flowstone() as flow:
        found = [_check(flow, target) for target in files]
    if form == "text":
        _print_text(found)
    elif form == "json":
        _print_json(found)
    else:
        from flowstone.api import diagnostics_sarif

        say(pretty_json(diagnostics_sarif([(path, diagnostics) for path, _, diagnostics in found])) + "\n")
    if any(errors_of(diagnostics) for _, _, diagnostics in found):
        raise Exit(exit_codes.FAILED)


def _check(flow: Flowstone, target: str) -> Found:
    try:
        workflow = flow.compile(target)
    except FlowstoneError as error:
        code = error.code.lower().replace("_", "-")
        return target, "", (Diagnostic(code, error.message, Place(), error.hint),)
    return workflow.path, workflow.source.text, workflow.diagnostics


def _print_text(found: list[Found]) -> None:
    from flowstone.api import diagnostics_text

    colour = terminal_of(sys.stdout).colour
    counts = {severity: 0 for severity in Severity}
    for path, text, diagnostics in found:
        say(diagnostics_text(path, text, diagnostics, colour=colour) if diagnostics else f"{path}: ok\n")
        for diagnostic in diagnostics:
            counts[diagnostic.severity] += 1
    if any(counts.values()):
        say(f"{_count(counts[Severity.ERROR], 'error')}, {_count(counts[Severity.WARNING], 'warning')}\n")


def _print_json(found: list[Found]) -> None:
    from flowstone.api import diagnostics_json

    files = [
        {"path": path, "ok": not errors_of(diagnostics), "diagnostics": diagnostics_json(path, diagnostics)}
        for path, _, diagnostics in found
    ]
    say(pretty_json({"ok": all(file["ok"] for file in files), "files": files}) + "\n")


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"
