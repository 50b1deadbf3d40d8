"""Our commands as programs that cases can start: one executable file each, from this very source."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path

import flowstone

SOURCE = Path(flowstone.__file__).parents[1]


def write_program(folder: Path, name: str) -> Path:
    """An executable `name` in `folder` that becomes our command, so that its process id is the command's."""
    code = f"from flowstone.cli.{name}.main import main; main()"
    words = ["env", f"PYTHONPATH={SOURCE}", sys.executable, "-P", "-c", code]
    path = folder / name
    path.write_text(f'#!/bin/sh\nexec {shlex.join(words)} "$@"\n')
    path.chmod(0o755)
    return path


def exclusions(corpus: Path) -> dict[str, str]:
    """The cases that are left to a later issue, each with the issue's title."""
    lines = (corpus / "exclusions.txt").read_text("utf-8").splitlines()
    rows = [line.split("\t") for line in lines if line and not line.startswith("#")]
    return dict((name, issue) for name, issue in rows)
