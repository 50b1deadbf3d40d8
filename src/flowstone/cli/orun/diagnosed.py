"""Mistakes of a job or a blueprint, shown with the lines of the source that they are about."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from flowstone.cli import exit_codes
from flowstone.cli.errors import Exit
from flowstone.cli.render.terminal import neutral, say, terminal_of
from flowstone.errors import CompileError

if TYPE_CHECKING:
    from flowstone.api import Flowstone


@contextmanager
def diagnosed(flow: Flowstone) -> Iterator[None]:
    """Print all mistakes of a source that does not compile on stderr, and end the command with 1."""
    try:
        yield
    except CompileError as error:
        from flowstone.api import diagnostics_text

        text = flow.source_text(error.path)
        say(diagnostics_text(error.path, text, error.diagnostics, colour=terminal_of(sys.stderr).colour), sys.stderr)
        count = len(error.diagnostics)
        say(f"✕ {neutral(error.path)} has {count} mistake{'' if count == 1 else 's'}\n", sys.stderr)
        raise Exit(exit_codes.FAILED) from None
