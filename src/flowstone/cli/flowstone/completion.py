"""`flowstone completion SHELL`: the script that lets a shell complete our words."""

from __future__ import annotations

import importlib

import click
from click.shell_completion import get_completion_class

from flowstone.cli.render.terminal import say_document

PROGRAMS = ("flowstone", "akm", "orun")
SHELLS = ("bash", "zsh", "fish")


@click.command("completion", epilog='Example, for ~/.bashrc: eval "$(flowstone completion bash)"')
@click.argument("shell", type=click.Choice(SHELLS))
@click.option(
    "--program",
    type=click.Choice(PROGRAMS),
    default="flowstone",
    show_default=True,
    help="The command whose words are completed.",
)
def command(shell: str, program: str) -> None:
    """Print the completion script for SHELL."""
    kind = get_completion_class(shell)
    assert kind is not None
    main = importlib.import_module(f"flowstone.cli.{program}.main").command
    say_document(kind(main, {}, program, f"_{program.upper()}_COMPLETE").source() + "\n")
