"""The driver's end of a worker process of scripts: starts it, sends it one script at a time, ends it."""

from __future__ import annotations

import asyncio
import contextlib
import json
import sys
from collections.abc import Iterator, Mapping
from importlib.util import find_spec
from typing import Any

from flowstone.dispatchers.script import sandbox
from flowstone.errors import DispatchSetupError
from flowstone.values import Json

_EXACT = 2**53 - 1
"""The largest integer that a number of JavaScript holds exactly, as its neighbours are held too."""
_KEPT = ("LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "SYSTEMROOT")
"""What an interpreter may need to start; a worker gets nothing else of the environment."""
_CLOSE_S = 2.0


class WorkerGone(Exception):
    """The worker ended in the middle of a script."""


class Worker:
    """One worker process. `run` is called for one script at a time."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process

    @classmethod
    async def start(cls, environment: Mapping[str, str]) -> Worker:
        """Start a process; DispatchSetupError when that cannot be done."""
        library = find_spec("_quickjs")
        if library is None or library.origin is None:
            raise DispatchSetupError("scripts need the Python package quickjs-ng, which is not installed")
        kept = {name: environment[name] for name in _KEPT if name in environment}
        try:
            process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-I", "-S", "-B", sandbox.__file__, library.origin),
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.DEVNULL,
                env={**kept, "TZ": "UTC"},
                cwd="/",
                start_new_session=True,
            )
        except OSError as error:
            raise DispatchSetupError(f"no worker for scripts can be started: {error}") from error
        return cls(process)

    @property
    def alive(self) -> bool:
        return self._process.returncode is None

    async def run(self, source: str, value: Json, seconds: float | None) -> bytes:
        """The reply to a script, JSON as `sandbox.run` gives it; WorkerGone if the process ended."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        script = {"source": source, "input": value, "integers": list(_large_integers(value, ["input"]))}
        frame = json.dumps({"script": json.dumps(script), "seconds": seconds}).encode()
        try:
            self._process.stdin.write(len(frame).to_bytes(4, "big") + frame)
            await self._process.stdin.drain()
            length = int.from_bytes(await self._process.stdout.readexactly(4), "big")
            return await self._process.stdout.readexactly(length)
        except (asyncio.IncompleteReadError, OSError):
            raise WorkerGone from None

    async def kill(self) -> None:
        """End the process at once, whatever it is doing."""
        with contextlib.suppress(ProcessLookupError):
            self._process.kill()
        await self._reap()

    async def close(self) -> None:
        """Let an idle process go."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        try:
            async with asyncio.timeout(_CLOSE_S):
                await self._reap()
        except TimeoutError:
            await self.kill()

    async def _reap(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        with contextlib.suppress(OSError):
            await self._process.stdin.wait_closed()
        await self._process.wait()


def _large_integers(value: Json, path: list[Any]) -> Iterator[tuple[list[Any], str]]:
    """The integers that a number of JavaScript cannot hold, with the way to each."""
    match value:
        case bool() | None:
            return
        case int():
            if abs(value) > _EXACT:
                yield path, str(value)
        case list():
            for index, item in enumerate(value):
                yield from _large_integers(item, [*path, index])
        case dict():
            for key, item in value.items():
                yield from _large_integers(item, [*path, key])
