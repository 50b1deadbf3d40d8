"""A command whose help also lists what the file behind its target declares: names for `--set`."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import click

from flowstone.errors import FlowstoneError, InputError

if TYPE_CHECKING:
    from flowstone.api import Flowstone
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


def with_declared_names(flow: Flowstone, target: str, error: InputError) -> InputError:
    """The error about what was given, with a hint that names what the workflow declares."""
    if error.hint:
        return error
    import difflib

    plan = flow.compiled_plan(target)
    names = [param.name for param in plan.params]
    if not names:
        hint = "This workflow declares no parameters."
    else:
        quoted = error.message.replace("`", '"').split('"')[1::2]
        near = [match for word in quoted for match in difflib.get_close_matches(word, names, 1) if match != word]
        hint = f"Did you mean {near[0]}? " if near else ""
        hint += f"Declared: {', '.join(names)}. `flowstone show {target}` tells more."
    return InputError(error.message, code=error.code, hint=hint)


def _is_file(word: str) -> bool:
    return not word.startswith("-") and (word.endswith((".md", ".yml", ".yaml")) or os.path.isfile(word))


def _plan_of(file: str, language: str | None) -> Plan | None:
    from flowstone.api import Flowstone

    try:
        with Flowstone(language=language) as flow:
            return flow.compiled_plan(file)
    except FlowstoneError:
        return None
