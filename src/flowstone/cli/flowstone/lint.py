"""`flowstone lint FILE…`: every mistake of workflow files, as text, JSON or SARIF."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from flowstone.cli import exit_codes
from flowstone.cli.errors import Exit
from flowstone.cli.render.terminal import one_line, say, say_document, terminal_of
from flowstone.diagnostics import Diagnostic, Severity, errors_of
from flowstone.errors import SourceError, UsageError
from flowstone.values import pretty_json

if TYPE_CHECKING:
    from flowstone.api import Flowstone

Found = tuple[str, str, tuple[Diagnostic, ...], int]
"""A file, its text, what is wrong with it, and what the command ends with because of it."""


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
    """Check workflow files (or refs) for mistakes. Ends with 1 if a file has errors, 2 if one cannot be read."""
    from flowstone.api import Flowstone

    with Flowstone() as flow:
        found = [_check(flow, target) for target in files]
    if form == "text":
        _print_text(found)
    elif form == "json":
        _print_json(found)
    else:
        from flowstone.api import diagnostics_sarif

        say_document(pretty_json(diagnostics_sarif([(path, diagnostics) for path, _, diagnostics, _ in found])) + "\n")
    raise Exit(max(code for *_, code in found))


def _check(flow: Flowstone, target: str) -> Found:
    try:
        workflow = flow.compile(target)
    except (SourceError, UsageError) as error:
        from flowstone.api.texts import unreadable

        return target or '""', "", (unreadable(target, error),), exit_codes.exit_code(error)
    code_of_errors = exit_codes.FAILED if errors_of(workflow.diagnostics) else exit_codes.OK
    return workflow.path, workflow.source.text, workflow.diagnostics, code_of_errors


def _print_text(found: list[Found]) -> None:
    from flowstone.api import diagnostics_text

    colour = terminal_of(sys.stdout).colour
    counts = {severity: 0 for severity in Severity}
    for path, text, diagnostics, _ in found:
        say(diagnostics_text(path, text, diagnostics, colour=colour) if diagnostics else f"{one_line(path)}: ok\n")
        for diagnostic in diagnostics:
            counts[diagnostic.severity] += 1
    if any(counts.values()):
        say(f"{_count(counts[Severity.ERROR], 'error')}, {_count(counts[Severity.WARNING], 'warning')}\n")


def _print_json(found: list[Found]) -> None:
    from flowstone.api import diagnostics_json

    files = [
        {"path": path, "ok": not errors_of(diagnostics), "diagnostics": diagnostics_json(path, diagnostics)}
        for path, _, diagnostics, _ in found
    ]
    say_document(pretty_json({"ok": all(file["ok"] for file in files), "files": files}) + "\n")


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"
