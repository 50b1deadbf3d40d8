"""Compile errors of a verb: shown with the lines of the source that they are about."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from flowstone.cli import exit_codes
from flowstone.cli.errors import Exit
from flowstone.cli.render.terminal import say, terminal_of
from flowstone.errors import CompileError

if TYPE_CHECKING:
    from flowstone.api import Flowstone


@contextmanager
def compile_errors_shown(flow: Flowstone) -> Iterator[None]:
    """Print the diagnostics of a source that does not compile on stderr, and end the command."""
    try:
        yield
    except CompileError as error:
        from flowstone.api import diagnostics_text

        text = flow.source_text(error.path)
        colour = terminal_of(sys.stderr).colour
        say(diagnostics_text(error.path, text, error.diagnostics, colour=colour), sys.stderr)
        count = len(error.diagnostics)
        say(f"error: {error.path} has {count} mistake{'' if count == 1 else 's'}; nothing was started\n", sys.stderr)
        raise Exit(exit_codes.exit_code(error)) from None
