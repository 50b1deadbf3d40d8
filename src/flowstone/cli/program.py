"""A console command from its words to its exit code: what the three `main` functions share."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Sequence
from typing import NoReturn

import click

from flowstone.cli.errors import Voice, guarded
from flowstone.cli.options import run_click

VALUED = ("--format", "--output", "--detail", "--shape")
PLAIN = ("-q", "--quiet", "--verbose")


def run_program(command: click.Command, voice: Voice, argv: Sequence[str] | None, name: str) -> int:
    """Run a command with the words behind its name, by default those of this process."""
    _open_what_is_closed()
    words = list(sys.argv[1:] if argv is None else argv)
    return guarded(voice, lambda: run_click(command, behind_the_verb(words), name))


def leave(code: int) -> NoReturn:
    """End the process with an exit code, once all that was said is out.

    At once: to take the interpreter down piece by piece costs a small verb a sixth of its time, and
    by now a verb has closed all that it held.
    """
    for stream in (sys.stdout, sys.stderr):
        if stream is not None:
            with contextlib.suppress(OSError, ValueError):  # whatever could be told of it has been told
                stream.flush()
    os._exit(code)


def _open_what_is_closed() -> None:
    """A command that was started without stdout or stderr says nothing there, and works all the same."""
    if sys.stdout is None:
        sys.stdout = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115  (for the whole process)
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115  (for the whole process)


def behind_the_verb(words: list[str]) -> list[str]:
    """The words with the output options that stand in front of the verb moved to the end."""
    moved: list[str] = []
    rest = list(words)
    while rest and rest[0].partition("=")[0] in (*VALUED, *PLAIN):
        word = rest.pop(0)
        moved.append(word)
        if word in VALUED and rest:
            moved.append(rest.pop(0))
    return [*rest, *moved] if rest else words


def print_version(ctx: click.Context, _param: click.Parameter, wanted: bool) -> None:
    """The callback of `--version`."""
    if wanted and not ctx.resilient_parsing:
        from importlib.metadata import version

        click.echo(f"flowstone {version('flowstone')}")
        ctx.exit()


def version_option() -> click.Option:
    return click.Option(
        ["--version"],
        is_flag=True,
        is_eager=True,
        expose_value=False,
        callback=print_version,
        help="Show the version and exit.",
    )
