"""Rows of ours in a user's crontab. All other lines stay as they are, byte for byte.

A row is one line with our mark at its end: `0 6 * * * cd /assets && command >/dev/null # flowstone[id] key`.
The table is read and installed by the `crontab` program, and read again to see that it took.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Sequence
from urllib.parse import quote, unquote

from flowstone.errors import StoreError
from flowstone.expr.cron import CronProblem, check_cron, numeric_cron
from flowstone.ports.activation import Row, Unschedulable
from flowstone.schedule.programs import Ended, Run

LINE_BYTES = 998
"""What every cron takes as one command; what is longer some cut without a word."""
NO_TABLE = re.compile(rb"no crontab for", re.IGNORECASE)
ESCAPED = re.compile(rb"\\[a-z]")
_QUIET = " >/dev/null"
_PLAIN = "/#.-_~@+=,"


class Crontab:
    """The Timetable port over `crontab -l` and `crontab -`; `owner` is the mark of this installation."""

    name = "crontab"
    missed = "skip: cron runs nothing for times at which the machine was off or asleep"

    def __init__(self, owner: str, run: Run, which: Callable[[str], str | None]) -> None:
        self.owner = owner
        self._run = run
        self._which = which

    def problem(self) -> str | None:
        if self._which("crontab") is None:
            return (
                "there is no crontab program: install cron (Debian: apt-get install cron), choose another scheduler "
                "with akm config set scheduler.backend, or keep `flowstone schedule FILE…` running"
            )
        return None

    def rows(self) -> Sequence[Row]:
        return [row for line in _lines(self._table()) if (row := row_of(line, self.owner))]

    def put(self, row: Row) -> None:
        line = line_of(row, self.owner)
        self._install(lambda table: with_row(table, row.key, line, self.owner))

    def remove(self, key: str) -> None:
        self._install(lambda table: with_row(table, key, b"", self.owner))

    def _table(self) -> bytes:
        ended = self._crontab("-l")
        if ended.code == 0:
            return self._exact() if ESCAPED.search(ended.stdout) else ended.stdout
        if NO_TABLE.search(ended.stderr):
            return b""
        raise _refused("cannot be read", ended)

    def _exact(self) -> bytes:
        """The bytes that an editor gets: Debian's `-l` spells some control characters as escapes."""
        ended = self._run(["/usr/bin/env", "VISUAL=cat", "EDITOR=cat", "crontab", "-e"], None)
        if ended.code != 0:
            raise _refused("cannot be read", ended)
        return ended.stdout

    def _install(self, change: Callable[[bytes], bytes]) -> None:
        before = self._table()
        wanted = change(before)
        if wanted == before:
            return
        ended = self._crontab("-", wanted) if wanted else self._crontab("-r")
        if ended.code != 0:
            raise _refused("was not accepted", ended)
        if self._table() != wanted:
            raise StoreError("the crontab was changed by someone else at the same time", hint="Sync again.")

    def _crontab(self, word: str, given: bytes | None = None) -> Ended:
        problem = self.problem()
        if problem is not None:
            raise StoreError(problem, code="SCHEDULER_UNAVAILABLE")
        return self._run(["crontab", word], given)


def line_of(row: Row, owner: str) -> bytes:
    """The line of a row, with its line feed; Unschedulable where a crontab cannot hold it."""
    words = [f"{name}={value}" for name, value in row.env]
    command = shlex.join(["/usr/bin/env", *words, *row.argv] if words else row.argv)
    text = f"cd {shlex.quote(row.cwd)} && {command}{_QUIET} {_mark(owner)}{quote(row.key, safe=_PLAIN)}"
    if any(ord(char) < 32 or ord(char) == 127 for char in text):
        raise Unschedulable("a crontab line cannot hold a line break or another control character")
    line = text.replace("%", "\\%").encode("utf-8", "surrogateescape")
    if len(line) > LINE_BYTES:
        raise Unschedulable(
            f"its command has {len(line)} bytes, over the {LINE_BYTES} that a crontab line takes: "
            "give fewer inputs in the schedule, or defaults in the file"
        )
    return numeric_cron(row.cron).encode() + b" " + line + b"\n"


def row_of(line: bytes, owner: str) -> Row | None:
    """The row that a line holds; None for a line that is not ours.

    One of ours that somebody altered beyond reading has no command, so that it differs from what is wanted.
    """
    front, mark, tail = line.rpartition(b" " + _mark(owner).encode())
    name = tail.rstrip(b"\r\n")
    if not mark or not name or len(name.split()) != 1 or front[:1] in (b"", b"#") or front[:1].isspace():
        return None
    key = unquote(name.decode("utf-8", "surrogateescape").replace("\\%", "%"))
    parts = front.decode("utf-8", "surrogateescape").split(None, 5)
    try:
        cron = check_cron(" ".join(parts[:5]))
        words = shlex.split(parts[5].removesuffix(_QUIET).replace("\\%", "%"))
    except (CronProblem, ValueError, IndexError):
        return Row(key, " ".join(parts[:5]), (), "")
    if words[:1] != ["cd"] or words[2:3] != ["&&"]:
        return Row(key, cron, tuple(words), "")
    return _read(key, cron, words[1], words[3:])


def with_row(table: bytes, key: str, line: bytes, owner: str) -> bytes:
    """The table with `line` in the place of our row (at the end where there is none yet); b"" removes it.

    A table whose last line has no line feed gets one: cron does not read such a line otherwise.
    """
    made: list[bytes] = []
    placed = line == b""
    for old in _lines(table):
        row = row_of(old, owner)
        if row is None or row.key != key:
            made.append(old)
        elif not placed:
            made.append(line)
            placed = True
    if not placed:
        if made and not made[-1].endswith(b"\n"):
            made[-1] += b"\n"
        made.append(line)
    return b"".join(made)


def _lines(table: bytes) -> list[bytes]:
    """The lines with their line feeds; nothing else ends a line."""
    return re.findall(rb"[^\n]*\n|[^\n]+", table)


def _mark(owner: str) -> str:
    return f"# flowstone[{owner}] "


def _read(key: str, cron: str, cwd: str, words: list[str]) -> Row:
    env: list[tuple[str, str]] = []
    if words[:1] == ["/usr/bin/env"]:
        words = words[1:]
        while words and re.match(r"[A-Za-z_][A-Za-z0-9_]*=", words[0]):
            name, _, value = words.pop(0).partition("=")
            env.append((name, value))
    return Row(key, cron, tuple(words), cwd, tuple(env))


def _refused(what: str, ended: Ended) -> StoreError:
    said = "; ".join(ended.stderr.decode("utf-8", "replace").split("\n")).strip("; ")
    return StoreError(f"the crontab {what}: {said or f'exit code {ended.code}'}", code="SCHEDULER_REFUSED")
