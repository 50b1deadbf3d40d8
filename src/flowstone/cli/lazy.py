"""Groups of verbs that import a verb only when it runs, and what else a group answers.

Help and completion of a group come from its table alone. An unknown verb, a removed one and a
missing one become errors of our own tree.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import NamedTuple

import click
from click.shell_completion import CompletionItem

from flowstone.cli.exit_codes import USAGE
from flowstone.errors import UsageError


class Verb(NamedTuple):
    """`module` holds the verb's click command as `command`, or as what follows a colon; `help` is one line."""

    module: str
    help: str


class LazyGroup(click.Group):
    """A group over a table of verbs. `removed` maps verbs of the past to what to use instead.

    Without a verb the group prints its help: `bare_help` as an answer, `bare_usage` on stderr as the
    error that it is; otherwise the error lists the verbs.
    """

    def __init__(
        self,
        name: str,
        verbs: Mapping[str, Verb],
        *,
        removed: Mapping[str, str] | None = None,
        bare_help: bool = False,
        bare_usage: bool = False,
        **settings: object,
    ) -> None:
        callback = click.pass_context(self.bare)
        super().__init__(name, invoke_without_command=True, callback=callback, **settings)  # type: ignore[arg-type]  # click types each setting
        self.verbs = verbs
        self.removed = removed or {}
        self.bare_help = bare_help
        self.bare_usage = bare_usage

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted(self.verbs)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        verb = self.verbs.get(cmd_name)
        if verb is None:
            return None
        module, _, name = verb.module.partition(":")
        command = getattr(importlib.import_module(module), name or "command")
        assert isinstance(command, click.Command)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        command = self.get_command(ctx, args[0])
        if command is None:
            raise self._unknown(args[0], ctx)
        return args[0], command, args[1:]

    def bare(self, ctx: click.Context) -> None:
        """What the group does without a verb; with one, nothing."""
        if ctx.invoked_subcommand is not None:
            return
        if self.bare_help:
            click.echo(ctx.get_help())
            return
        if self.bare_usage:
            click.echo(ctx.get_help(), err=True)
            ctx.exit(USAGE)
        raise UsageError(
            f"`{ctx.command_path}` requires a subcommand: {', '.join(self.list_commands(ctx))}.",
            code="MISSING_REQUIRED_ARGUMENT",
            hint=f"`{ctx.command_path} --help` tells what each of them does.",
        )

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, self.verbs[name].help) for name in self.list_commands(ctx)])

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        verbs = [
            CompletionItem(name, help=verb.help)
            for name, verb in sorted(self.verbs.items())
            if name.startswith(incomplete)
        ]
        return verbs + click.Command.shell_complete(self, ctx, incomplete)

    def _unknown(self, name: str, ctx: click.Context) -> UsageError:
        if name.startswith("-"):
            return UsageError(f"Unknown flag {name}.", code="UNKNOWN_FLAG")
        return UsageError(
            f"Unknown command {name}",
            code="UNKNOWN_COMMAND",
            hint=self.removed.get(name) or self._near(name, ctx),
        )

    def _near(self, name: str, ctx: click.Context) -> str:
        import difflib

        near = difflib.get_close_matches(name, self.verbs, 1)
        if near:
            return f"Did you mean `{ctx.command_path} {near[0]}`?"
        return f"`{ctx.command_path}` knows: {', '.join(self.list_commands(ctx))}."
