"""The words by which a verb is told which run: `[RUN]` and `--last`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

F = TypeVar("F", bound=Callable[..., Any])


def run_choice(function: F) -> F:
    """Give a verb the argument `run` (an id, or the start of one) and the flag `last`."""
    with_flag = click.option("--last", is_flag=True, help="The newest run that was started in this folder.")(function)
    return click.argument("run", required=False)(with_flag)
