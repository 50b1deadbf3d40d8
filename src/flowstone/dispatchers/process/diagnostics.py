"""How a failed command is described: what did not start, how it ended, and the tails of its streams.

Texts come in redacted and are clipped here; no clip cuts a redaction mark in two.
"""

from __future__ import annotations

import errno
import os
import signal

from flowstone.plan.bounds import DIAGNOSTIC_CHARS, STDERR_TAIL_CHARS
from flowstone.redaction import MARK

OUTPUT_SEPARATOR = "--- unit output ---"
SHORT_TAIL_BYTES = 400
"""Bytes of stderr in the errors of specs that keep their streams (orun facts 3)."""


def not_started(number: int, which: str, program: str, cwd: str) -> str:
    """What kept a command from starting: the folder is named for a folder, the program for a program."""
    if which == "cwd":
        return f"the working directory {cwd} {_FOLDER_FAULTS.get(number, os.strerror(number))}"
    if which == "interpreter":
        return f'"{program}" cannot be started: the interpreter in its first line, or its loader, is missing'
    if number == errno.E2BIG:
        return (
            f'"{program}" cannot be started: its arguments and environment together are larger than the '
            "system allows (argument list too long); pass the path of a file instead of the data"
        )
    return f'"{program}" {_PROGRAM_FAULTS.get(number, "cannot be started: " + os.strerror(number))}'


def how_it_ended(status: int | None) -> str:
    """An exit code, or the name of the signal for a negated one."""
    if status is None:
        return "ended in an unknown way"
    return f"exited {status}" if status >= 0 else f"was killed by {signal_name(-status)}"


def signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def unit_error(unit: str, argv: tuple[str, ...], what: str, stderr: str = "") -> str:
    """The error of a unit: it names only the program and the number of its arguments (akm facts 12)."""
    count = len(argv) - 1
    plural = "argument" if count == 1 else "arguments"
    head = f'exec unit "{unit}" ran "{argv[0]}" ({count} {plural}) and it {what}.'
    if not stderr.strip():
        return head
    stderr = stderr.rstrip()
    tail = tail_of(stderr, STDERR_TAIL_CHARS)
    if len(tail) == len(stderr):
        return f"{head} stderr:\n{stderr}"
    return f"{head} stderr (last {STDERR_TAIL_CHARS} chars):\n…{tail}"


def unit_diagnostic(error: str, stdout: str) -> str:
    """The error with what the command printed behind it, clipped to what a journal row keeps."""
    text = f"{error.rstrip()}\n{OUTPUT_SEPARATOR}\n{stdout.rstrip()}" if stdout.strip() else error.rstrip()
    return clip_marked(text, DIAGNOSTIC_CHARS)


def step_error(program: str, what: str, stderr: str) -> str:
    """The error of a spec that keeps its streams: `run: PROGRAM exited 3: <tail of stderr>`."""
    text = stderr.strip()
    if not text:
        return f"run: {program} {what}"
    data = text.encode("utf-8")
    if len(data) > SHORT_TAIL_BYTES:
        text = "…" + tail_of(text, len(data[-SHORT_TAIL_BYTES:].decode("utf-8", "ignore")))
    return f"run: {program} {what}: {text}"


def seconds(milliseconds: int) -> str:
    """A timeout for people: `2s`, `1.5s`, `300ms`."""
    return f"{milliseconds}ms" if milliseconds < 1000 else f"{milliseconds / 1000:g}s"


def mebibytes(size: int) -> str:
    """A bound for people: `8 MiB`, or its bytes where it is no whole number of them."""
    whole, rest = divmod(size, 1 << 20)
    return f"{size:,} bytes" if rest else f"{whole} MiB"


def clip_marked(text: str, limit: int) -> str:
    """The first `limit` characters and an ellipsis; a mark that the cut would split is left out."""
    if len(text) <= limit:
        return text
    mark = text.rfind(MARK, 0, limit + len(MARK) - 1)
    return text[: mark if 0 <= mark < limit < mark + len(MARK) else limit] + "…"


def tail_of(text: str, length: int) -> str:
    """The last `length` characters; a mark that the cut would split is left out."""
    if len(text) <= length:
        return text
    cut = len(text) - length
    mark = text.rfind(MARK, 0, cut + len(MARK) - 1)
    return text[mark + len(MARK) if 0 <= mark < cut < mark + len(MARK) else cut :]


_FOLDER_FAULTS = {
    errno.ENOENT: "does not exist",
    errno.ENOTDIR: "is not a folder",
    errno.EACCES: "may not be entered (permission denied)",
}
_PROGRAM_FAULTS = {
    errno.ENOENT: "was not found",
    errno.ENOTDIR: "was not found: a part of its path is not a folder",
    errno.EACCES: "may not be executed (permission denied): set its execute bit",
    errno.EISDIR: "is a folder, not a program",
    errno.ENOEXEC: "is not a program: it is neither a binary for this machine nor begins with a #! line",
}
