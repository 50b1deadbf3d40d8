"""The outermost ring of a command: runs its body and turns every error into text and exit code.

Each command speaks its own way: akm prints an envelope, orun one marked line, flowstone a sentence
with a hint. No traceback reaches a terminal; an unexpected one is kept in a file.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from enum import StrEnum

from flowstone.cli import exit_codes
from flowstone.cli.render.terminal import check_stdout, lost_output, neutral, say
from flowstone.errors import FlowstoneError, InternalError


class Voice(StrEnum):
    """How a command words its errors."""

    AKM = "akm"
    ORUN = "orun"
    FLOWSTONE = "flowstone"


class Exit(Exception):
    """Ends the command with `code`, silently."""

    def __init__(self, code: int) -> None:
        super().__init__(code)
        self.code = code


def guarded(voice: Voice, body: Callable[[], int | None]) -> int:
    """Run `body`; returns the exit code, with whatever went wrong reported on stderr.

    Output that was lost is told at the end, when a run has come to its own.
    """
    code = _ended(voice, body)
    lost = lost_output()
    if lost is None:
        return code
    report(voice, FlowstoneError(lost, code=LOST))
    return code or _LOST_CODES[voice]


_LOST_CODES = {Voice.AKM: exit_codes.INTERNAL, Voice.ORUN: exit_codes.FAILED, Voice.FLOWSTONE: exit_codes.OUTPUT}
"""What lost output ends a command with: the drop-ins know no code of its own for it."""
LOST = "OUTPUT_FAILED"


def _ended(voice: Voice, body: Callable[[], int | None]) -> int:
    try:
        code = body() or exit_codes.OK
        check_stdout()
        return code
    except Exit as end:
        return end.code
    except FlowstoneError as error:
        if error.code == LOST:
            return exit_codes.OK
        report(voice, error)
        return exit_codes.FAILED if voice is Voice.ORUN else exit_codes.exit_code(error)
    except KeyboardInterrupt:
        return exit_codes.INTERRUPTED
    except BrokenPipeError:
        return exit_codes.FAILED
    except Exception as error:
        return _unforeseen(voice, error)


def _unforeseen(voice: Voice, error: Exception) -> int:
    """An error that nobody has foreseen, unless it is what stdout says to a library that writes to it."""
    if isinstance(error, OSError):
        try:
            check_stdout()
        except FlowstoneError:
            return exit_codes.OK
    report(voice, _unexpected(error))
    return exit_codes.INTERNAL


def report(voice: Voice, error: FlowstoneError) -> None:
    """Say on stderr what went wrong, in the words of a command."""
    if voice is Voice.AKM:
        text = envelope(error)
    elif voice is Voice.ORUN:
        text = neutral(f"✕ {error.message}")
    else:
        text = neutral(f"error: {error.message}" + (f"\n  hint: {error.hint}" if error.hint else ""))
    say(text + "\n", sys.stderr)


def envelope(error: FlowstoneError) -> str:
    """The error as akm prints it: pretty JSON with `ok`, `error`, `code` and, where known, `hint`."""
    from flowstone.cli.render.formats import as_json

    fields = {"ok": False, "error": error.message, "code": error.code}
    if error.hint:
        fields["hint"] = error.hint
    return as_json(fields)


def _unexpected(error: Exception) -> InternalError:
    what = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
    kept = _keep_traceback(error)
    hint = f"The traceback is in {kept}." if kept else "No traceback could be kept."
    return InternalError(f"Unexpected error: {what}", hint=hint)


def _keep_traceback(error: Exception) -> str | None:
    import time
    import traceback

    from flowstone.config.environment import variables
    from flowstone.config.paths import locate

    folder = locate(variables()).crashes
    path = os.path.join(folder, f"{time.strftime('%Y%m%dT%H%M%SZ', time.gmtime())}-{os.getpid()}.txt")
    try:
        os.makedirs(folder, exist_ok=True)
        with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
            traceback.print_exception(error, file=file)
    except OSError:
        return None
    return path
