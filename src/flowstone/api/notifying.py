"""Tells a command of the user's how a run ended: the run as JSON on its standard input.

Whatever becomes of the command, the run stays as it is; a failure is a warning.
"""

from __future__ import annotations

import contextlib
import os
import selectors
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, assert_never

from flowstone.run.events import RunStatus

if TYPE_CHECKING:
    from flowstone.api.session import Session
    from flowstone.drivers.drive import DriveReport

TIMEOUT_S = 30.0
LOOK_S = 0.1
TAIL = 500
"""Characters of what a failed command said that a warning quotes."""


def notify(session: Session, report: DriveReport) -> str | None:
    """Run the configured command for a run that ended in this drive; what is wrong with it, or None."""
    from flowstone.views.overview import document

    hook, occasion = session.wiring.settings.notify, _occasion(report.state.status)
    if hook is None or occasion is None or occasion not in hook.on:
        return None
    from flowstone.values import pretty_json

    text = pretty_json(document(report.row, report.state, session.wiring.clock.now_ms()))
    names = {"FLOWSTONE_RUN_ID": report.row.record.id, "FLOWSTONE_OCCASION": occasion}
    problem = _run(hook.command, text, {**session.wiring.env, **names}, report.row.record.cwd)
    return problem and f"the notification command {hook.command[0]} {problem}"


def _occasion(status: RunStatus) -> str | None:
    match status:
        case RunStatus.SUCCEEDED:
            return "success"
        case RunStatus.FAILED:
            return "failure"
        case RunStatus.HELD:
            return "blocked"
        case RunStatus.ACTIVE | RunStatus.ABANDONED:
            return None
        case _:
            assert_never(status)


def _run(command: Sequence[str], text: str, env: Mapping[str, str], cwd: str) -> str | None:
    """How the command failed, as the end of a sentence; None when it did not."""
    try:
        process = subprocess.Popen(
            list(command),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            cwd=cwd if os.path.isdir(cwd) else None,
            env=dict(env),
            start_new_session=True,
        )
    except (OSError, ValueError) as error:
        return f"could not be started: {error}"
    try:
        said = _talk(process, text.encode("utf-8", "replace"))
    except TimeoutError:
        return f"was ended after {TIMEOUT_S:.0f} s"
    finally:
        _end(process)
    if process.returncode == 0:
        return None
    tail = said.decode("utf-8", "replace").strip()[-TAIL:]
    return f"ended with {process.returncode}{': ' + tail if tail else ''}"


def _talk(process: subprocess.Popen[bytes], text: bytes) -> bytes:
    """Give the command its input and keep the end of what it says, until it ends; TimeoutError after its time.

    What it leaves running may hold the pipe: nobody waits for that.
    """
    assert process.stdin is not None
    assert process.stdout is not None
    said, left = b"", memoryview(text)
    deadline = time.monotonic() + TIMEOUT_S
    with selectors.DefaultSelector() as ready:
        for pipe, wish in ((process.stdin, selectors.EVENT_WRITE), (process.stdout, selectors.EVENT_READ)):
            os.set_blocking(pipe.fileno(), False)
            ready.register(pipe, wish)
        while process.poll() is None or ready.get_map().get(process.stdout.fileno()) is not None:
            if time.monotonic() > deadline:
                raise TimeoutError
            found = ready.select(LOOK_S)
            if not found and process.poll() is not None:
                return said
            for key, _ in found:
                if key.fileobj is process.stdout:
                    data = os.read(key.fd, 65_536)
                    said = (said + data)[-4 * TAIL :]
                    if not data:
                        ready.unregister(process.stdout)
                else:
                    left = _given(process, ready, left)
    return said


def _given(process: subprocess.Popen[bytes], ready: selectors.BaseSelector, left: memoryview) -> memoryview:
    """Write some of the input; a command that reads no more has had enough."""
    assert process.stdin is not None
    try:
        left = left[os.write(process.stdin.fileno(), left[:65_536]) :]
    except BrokenPipeError:
        left = left[:0]
    if not left:
        ready.unregister(process.stdin)
        process.stdin.close()
    return left


def _end(process: subprocess.Popen[bytes]) -> None:
    """End the whole group and let go of the pipes, whatever the command left behind."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    for pipe in (process.stdin, process.stdout):
        if pipe is not None:
            with contextlib.suppress(OSError):
                pipe.close()
