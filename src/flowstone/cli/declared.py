"""A command whose help also lists what the file behind its target declares: names for `--set`."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import click

from flowstone.errors import FlowstoneError, InputError, UsageError
from flowstone.source.remote import is_remote

if TYPE_CHECKING:
    from flowstone.api import Flowstone, Given
    from flowstone.plan.model import Plan


class TakesFile(click.Command):
    """`run FILE --help` shows the params of FILE with their types, defaults and descriptions."""

    language: str | None = None

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        ctx.meta["flowstone.file"] = next((word for word in args if _is_file(word)), None)
        return super().parse_args(ctx, args)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        super().format_options(ctx, formatter)
        file = ctx.meta.get("flowstone.file")
        plan = _plan_of(file, self.language) if file else None
        if plan is not None and plan.params:
            from flowstone.views.synopsis import param_facts

            with formatter.section(f"Parameters of {file}, for --set"):
                formatter.write_dl([(param.name, param_facts(param)) for param in plan.params])


def with_declared_names(flow: Flowstone, target: str, given: Given, error: UsageError) -> UsageError:
    """The error about what was given, with a hint that names what the workflow declares."""
    plan = flow.compiled_plan(target)
    names = [param.name for param in plan.params]
    unknown = [name for name, _ in given.texts if name not in names]
    message = error.message
    if error.code == "UNKNOWN_FLAG" and unknown:
        message = f'unknown parameter "{unknown[0]}"'
    return InputError(message, code=error.code, hint=_hint(target, names, unknown))


def _hint(target: str, names: list[str], unknown: list[str]) -> str:
    import difflib

    if not names:
        return f"{target} declares no parameters."
    near = [match for name in unknown for match in difflib.get_close_matches(name, names, 1)]
    question = f"Did you mean {near[0]}? " if near else ""
    return f"{question}Declared: {', '.join(names)}. `flowstone show {target}` tells more."


def _is_file(word: str) -> bool:
    return (
        not word.startswith("-")
        and not is_remote(word)
        and (word.endswith((".md", ".yml", ".yaml")) or os.path.isfile(word))
    )


def _plan_of(file: str, language: str | None) -> Plan | None:
    from flowstone.api import Flowstone

    try:
        with Flowstone(language=language) as flow:
            return flow.compiled_plan(file)
    except FlowstoneError:
        return None
