"""Running the programs of a machine's scheduler: words and bytes in, exit code and bytes out."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

import msgspec

from flowstone.errors import StoreError

LIMIT_S = 30


class Ended(msgspec.Struct, frozen=True):
    code: int
    stdout: bytes
    stderr: bytes


Run: TypeAlias = Callable[[Sequence[str], bytes | None], Ended]
"""Runs a program with bytes on its stdin (None: nothing there)."""


def runner(env: Mapping[str, str]) -> Run:
    """A Run in the environment `env`, in the C locale so that messages can be read."""
    import subprocess

    spoken = {**env, "LC_ALL": "C"}

    def run(argv: Sequence[str], given: bytes | None = None) -> Ended:
        try:
            done = subprocess.run(
                list(argv), input=given or b"", capture_output=True, env=spoken, timeout=LIMIT_S, check=False
            )
        except OSError as error:
            text = f"{argv[0]} cannot be run: {error.strerror}"
            raise StoreError(text, code="SCHEDULER_UNAVAILABLE") from None
        except subprocess.TimeoutExpired:
            raise StoreError(f"{argv[0]} did not end within {LIMIT_S} s", code="SCHEDULER_UNAVAILABLE") from None
        return Ended(done.returncode, done.stdout, done.stderr)

    return run
