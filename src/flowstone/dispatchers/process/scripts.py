"""The frozen bytes of a stored script → a private file for one command, deleted behind it."""

from __future__ import annotations

import glob
import os
import shutil
import tempfile
from collections.abc import Mapping

from flowstone.dispatchers.process.failures import CannotStart
from flowstone.plan.units import ExecSpec, ScriptFile
from flowstone.run.outcome import Reason

PREFIX = "flowstone-script-"
"""Begins the names of the folders, in front of the run's id; each folder is for its owner alone."""


class Scripts:
    """Writes the scripts of one drive's commands, below the machine's folder for temporary files.

    What an earlier drive of the same run left there when it was killed is deleted first.
    """

    def __init__(self) -> None:
        self._cleared: set[str] = set()

    def write(self, script: ScriptFile, run: str) -> str:
        """The path of a file that holds the script, alone in a folder; CannotStart where none can be written."""
        try:
            self._clear(run)
            folder = tempfile.mkdtemp(prefix=f"{PREFIX}{run}-")
            path = os.path.join(folder, script.name)
            descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o700)
            with open(descriptor, "wb") as file:
                os.fchmod(descriptor, 0o700)
                file.write(script.data)
        except OSError as error:
            text = f"{script.ref} cannot be written for its command: {error.strerror}"
            raise CannotStart(Reason.SPAWN_FAILED, text) from None
        return path

    def _clear(self, run: str) -> None:
        if run in self._cleared:
            return
        self._cleared.add(run)
        pattern = os.path.join(glob.escape(tempfile.gettempdir()), glob.escape(PREFIX + run) + "-*")
        for folder in glob.glob(pattern):
            shutil.rmtree(folder, ignore_errors=True)


def remove_script(path: str) -> None:
    """Delete a script with its folder; what was deleted already is no error."""
    shutil.rmtree(os.path.dirname(path), ignore_errors=True)


def interpreter_of(spec: ExecSpec, environment: Mapping[bytes, bytes]) -> str:
    """The program that runs a script: the first of its names that this machine has."""
    first = str(spec.argv[0])
    names = (first, *(spec.script.interpreters if spec.script is not None else ()))
    folders = os.fsdecode(environment.get(b"PATH", os.defpath.encode()))
    return next((name for name in names if shutil.which(name, path=folders) is not None), first)
