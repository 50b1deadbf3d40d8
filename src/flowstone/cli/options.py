"""Commands whose flags a file declares, and click's own errors in our words.

`FileFlags` gives a verb the flags that the workflow behind its target declares: they stand after
the target, have the declared names exactly, and show in help and completion.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import click
from click.shell_completion import CompletionItem

from flowstone.cli.exit_codes import OK
from flowstone.errors import InputError, UsageError

if TYPE_CHECKING:
    from flowstone.values import Json


class DeclaredFlag(NamedTuple):
    """A flag that a file declares. `schema` is a JSON Schema or None."""

    name: str
    schema: Json = None
    description: str | None = None


GivenFlag: TypeAlias = tuple[str, str | None]
"""A flag as typed: its name, and its value or None for a bare flag."""

Declare: TypeAlias = Callable[[str], Sequence[DeclaredFlag] | None]
"""The flags that a target declares; None when the target declares nothing that could be checked."""


class FileFlags(click.Command):
    """A command `TARGET [FLAGS]`. The callback gets the given flags as `flags`, in order.

    A flag that is neither the command's own nor declared raises UsageError UNKNOWN_FLAG. `declare`
    is asked only when there is such a flag, for help and for completion.
    """

    def __init__(self, *args: object, declare: Declare, **settings: object) -> None:
        super().__init__(*args, **settings)  # type: ignore[arg-type]  # click types each setting
        self.declare = declare

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        own, given, target = self._split(ctx, args)
        ctx.meta["flowstone.target"] = target
        if given and target is not None:
            self._refuse_unknown(given, target, own)
        rest = super().parse_args(ctx, own)
        ctx.params["flags"] = tuple(given)
        return rest

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        super().format_options(ctx, formatter)
        target = ctx.meta.get("flowstone.target")
        declared = self.declare(target) if target else None
        if declared:
            with formatter.section(f"Parameters of {target}"):
                formatter.write_dl([(f"--{flag.name}", describe(flag)) for flag in declared])

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        items = super().shell_complete(ctx, incomplete)
        target = ctx.meta.get("flowstone.target")
        if target and incomplete.startswith("-"):
            items.extend(
                CompletionItem(f"--{flag.name}", help=describe(flag))
                for flag in self.declare(target) or ()
                if f"--{flag.name}".startswith(incomplete)
            )
        return items

    def _split(self, ctx: click.Context, args: list[str]) -> tuple[list[str], list[GivenFlag], str | None]:
        """Part the command's own words from the flags behind the target."""
        options = {name: option for option in self._options(ctx) for name in _names(option)}
        own: list[str] = []
        given: list[GivenFlag] = []
        target: str | None = None
        words = list(args)
        while words:
            word = words.pop(0)
            name, equals, value = word.partition("=")
            if name in options:
                own.append(word)
                if not equals and not options[name].is_flag and words:
                    own.append(words.pop(0))
            elif target is not None and name.startswith("--") and len(name) > len("--"):
                given.append((name[2:], value if equals else _next_value(words, options)))
            else:
                target = word if target is None and not word.startswith("-") else target
                own.append(word)
        return own, given, target

    def _options(self, ctx: click.Context) -> list[click.Option]:
        return [param for param in self.get_params(ctx) if isinstance(param, click.Option)]

    def _refuse_unknown(self, given: list[GivenFlag], target: str, own: list[str]) -> None:
        if "--help" in own:
            return
        declared = self.declare(target)
        if declared is None:
            return
        names = [flag.name for flag in declared]
        for name, _ in given:
            if name not in names:
                raise UsageError(f"Unknown flag --{name}.", code="UNKNOWN_FLAG", hint=_declared_hint(target, names))


def run_click(command: click.Command, argv: Sequence[str] | None, name: str) -> int:
    """Run a command; what click refuses is raised as an error of our tree."""
    try:
        result = command.main(args=argv, prog_name=name, standalone_mode=False)
    except click.exceptions.Exit as end:
        return end.exit_code
    except click.Abort:
        raise KeyboardInterrupt from None
    except click.ClickException as error:
        raise translate(error, argv or ()) from None
    return result if isinstance(result, int) else OK


def translate(error: click.ClickException, argv: Sequence[str] = ()) -> UsageError:
    """Click's complaint about `argv` with our code and words (akm facts 21.4 and 31.1)."""
    match error:
        case click.NoSuchOption():
            near = error.possibilities or ()
            dashed = next((word for word in argv if word.startswith("-") and os.path.isfile(word)), None)
            if dashed is not None:
                text = f"A file whose name begins with a dash is written ./{dashed}"
                return UsageError(f"Unknown flag {error.option_name}.", code="UNKNOWN_FLAG", hint=text)
            hint = f"Did you mean {' or '.join(sorted(near))}?" if near else _help_hint(error)
            return UsageError(f"Unknown flag {error.option_name}.", code="UNKNOWN_FLAG", hint=hint)
        case click.MissingParameter(param=click.Argument() as argument):
            name = argument.make_metavar(error.ctx or click.Context(click.Command("")))
            return UsageError(
                f"Missing required positional argument: {name.strip('[]{}.')}",
                code="MISSING_REQUIRED_ARGUMENT",
                hint=_help_hint(error),
            )
        case click.BadOptionUsage():
            return InputError(f"Flag {error.option_name} requires a value.", hint=_help_hint(error))
        case click.BadParameter(param=param) if param is not None:
            label = param.opts[-1] if param.param_type_name == "option" else str(param.name).upper()
            return InputError(f"Invalid value for {label}: {error.message}", hint=_help_hint(error))
        case _:
            return InputError(error.format_message(), hint=_help_hint(error))


def describe(flag: DeclaredFlag) -> str:
    """One line of help: type, description and default, as far as they are declared."""
    schema = flag.schema if isinstance(flag.schema, dict) else {}
    kind = schema.get("type")
    parts = [kind if isinstance(kind, str) else "/".join(kind) if kind else ""]
    parts.append(flag.description or schema.get("description") or "")
    if "default" in schema:
        from flowstone.values import canonical_json

        parts.append(f"[default: {canonical_json(schema['default'])}]")
    return "  ".join(part for part in parts if part)


def _names(option: click.Option) -> list[str]:
    return [*option.opts, *option.secondary_opts]


def _next_value(words: list[str], own: Mapping[str, click.Option]) -> str | None:
    """The word behind a flag is its value, unless it is a flag itself."""
    if words and not words[0].startswith("--") and words[0] not in own:
        return words.pop(0)
    return None


def _declared_hint(target: str, names: list[str]) -> str:
    if not names:
        return f"{target} declares no parameters."
    return f"{target} declares: {', '.join(f'--{name}' for name in names)}."


def _help_hint(error: click.ClickException) -> str | None:
    ctx = getattr(error, "ctx", None)
    return f"See `{ctx.command_path} --help`." if ctx is not None else None
