"""What `akm env` and `akm secret` share: reading what is to be kept, and running a command with it."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Mapping
from typing import Any, NoReturn

from flowstone.cli.errors import Exit
from flowstone.cli.render.terminal import neutral, say
from flowstone.errors import InputError, UsageError

AFTER_REF: dict[str, Any] = {"ignore_unknown_options": True, "allow_interspersed_args": False}
"""Whatever stands behind the ref belongs to the command that is run."""
NOT_FOUND, NOT_EXECUTABLE = 127, 126


def command_of(words: tuple[str, ...], usage: str) -> tuple[str, ...]:
    """The command behind `--`, which may be left out."""
    argv = words[1:] if words[:1] == ("--",) else words
    if not argv:
        raise UsageError(f"A command is missing: {usage}", code="MISSING_REQUIRED_ARGUMENT")
    return argv


def run_with(values: Mapping[str, str], argv: tuple[str, ...]) -> NoReturn:
    """Become the command, with `values` over the variables of this process."""
    sys.stdout.flush()
    sys.stderr.flush()
    for name in ("SIGPIPE", "SIGXFSZ"):
        if hasattr(signal, name):
            signal.signal(getattr(signal, name), signal.SIG_DFL)
    try:
        os.execvpe(argv[0], argv, {**os.environ, **values})
    except OSError as error:
        say(neutral(f'"{argv[0]}" cannot be run: {error.strerror}') + "\n", sys.stderr)
        raise Exit(NOT_FOUND if isinstance(error, FileNotFoundError) else NOT_EXECUTABLE) from None
    except ValueError as error:
        raise InputError(f"The command cannot be run: {error}.") from None


def read_input(origin: str) -> bytes:
    """The bytes of a file, `-` for stdin."""
    if origin == "-":
        return sys.stdin.buffer.read()
    try:
        with open(origin, "rb") as file:
            return file.read()
    except OSError as error:
        raise UsageError(f"{origin} cannot be read: {error.strerror}") from None


def read_secret() -> bytes:
    """A value from stdin without its last line feed; a person is asked for it, unseen."""
    if sys.stdin.isatty():
        import getpass

        return getpass.getpass("Value: ").encode("utf-8", "surrogateescape")
    data = sys.stdin.buffer.read()
    return data[:-2] if data.endswith(b"\r\n") else data.removesuffix(b"\n")


def listing(field: str) -> Callable[[dict[str, Any]], str]:
    """A writer of one line for each entry: its ref and the names in it."""

    def text(envelope: dict[str, Any]) -> str:
        rows = envelope[field]
        return "".join("  ".join((row["ref"], *row.get("keys", ()))) + "\n" for row in rows) or f"No {field}.\n"

    return text
