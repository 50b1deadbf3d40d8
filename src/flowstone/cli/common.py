"""What the verbs of all commands share: the output options and the settings of this process."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import click

from flowstone.cli.render.formats import Detail, Format, Output

if TYPE_CHECKING:
    from flowstone.config.paths import Paths
    from flowstone.config.settings import Settings

F = TypeVar("F", bound=Callable[..., Any])


def output_options(default: Format = Format.JSON) -> Callable[[F], Callable[..., Any]]:
    """Give a verb the options of akm facts 21; its function gets them as one `output`."""

    def decorate(function: F) -> Callable[..., Any]:
        @functools.wraps(function)
        def wrapped(
            *args: Any,
            output_format: str,
            output_file: str | None,
            detail: str,
            shape: str,
            quiet: bool,
            verbose: bool,
            **options: Any,
        ) -> Any:
            output = Output(Format(output_format), output_file, Detail(detail), quiet, verbose)
            return function(*args, output=output, **options)

        for option in reversed(_options(default)):
            wrapped = option(wrapped)
        return wrapped

    return decorate


def paths() -> Paths:
    """The folders of this process."""
    from flowstone.config.environment import variables
    from flowstone.config.paths import locate

    return locate(variables())


def settings() -> Settings:
    """The checked configuration of this process."""
    from flowstone.config.environment import cores
    from flowstone.config.settings import load_settings

    return load_settings(paths(), cores())


def _options(default: Format) -> list[Callable[[Callable[..., Any]], Callable[..., Any]]]:
    return [
        click.option(
            "--format",
            "output_format",
            type=click.Choice([form.value for form in Format]),
            default=default.value,
            show_default=True,
            help="How to print the result.",
        ),
        click.option("--output", "output_file", metavar="FILE", help="Write the result to FILE, at once."),
        click.option(
            "--detail",
            type=click.Choice([detail.value for detail in Detail]),
            default=Detail.NORMAL.value,
            help="How much to print.",
        ),
        click.option("--shape", type=click.Choice(["human", "agent", "summary"]), default="human", hidden=True),
        click.option("-q", "--quiet", is_flag=True, help="No warnings and no progress on stderr."),
        click.option("--verbose", is_flag=True, help="More about what happens, on stderr."),
    ]
