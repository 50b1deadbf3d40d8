"""The pages of the documentation, and a replay of what they show.

Comments in a page tell what the fenced block behind them is: `<!-- file: PATH -->` a file of this
repository, `<!-- write: NAME -->` a file that the reader writes, `<!-- run -->` commands (`$ …`) with
their output, `<!-- python -->` a script. All blocks of a page share one folder.
`python -m tests.docs.pages PAGE…` writes the outputs anew.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted([ROOT / "README.md", ROOT / "CHANGELOG.md", *(ROOT / "docs").rglob("*.md")])
SHOWN_FOLDER = "/home/you/flows"
BLOCK = re.compile(
    r"^<!-- (?P<kind>file|write|run|python)(?:: (?P<name>\S+))? -->\n"
    r"(?P<fence>`{3,})(?P<language>\w*)\n(?P<body>.*?)^(?P=fence)$",
    re.M | re.S,
)
VARYING = (
    (re.compile(r"\b[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f-]{21}\b"), "RUN"),
    (re.compile(r"\b([a-z][a-z-]*)-\d{19}\b"), r"\1-TIME"),
    (re.compile(r"\b\d+(\.\d+)?(ms|s)\b"), "TIME"),
    (re.compile(r"\d{4}-\d\d-\d\dT[\d:.]+Z"), "MOMENT"),
    (re.compile(r"\b[0-9a-f]{64}\b"), "DIGEST"),
    (re.compile(r" {2,}"), "  "),
)


class Command(NamedTuple):
    text: str
    output: str


def blocks(page: Path) -> Iterator[re.Match[str]]:
    return BLOCK.finditer(page.read_text("utf-8"))


def commands(body: str) -> list[Command]:
    parts = re.split(r"^\$ (.*)\n", body, flags=re.M)
    return [Command(text, output) for text, output in zip(parts[1::2], parts[2::2], strict=True)]


def replay(page: Path, folder: Path) -> Iterator[tuple[re.Match[str], list[Command]]]:
    """Each run block of a page with its commands and what they really print."""
    for block in blocks(page):
        match block["kind"]:
            case "file":
                shutil.copy(ROOT / block["name"], folder)
            case "write":
                (folder / block["name"]).write_text(block["body"])
            case "run":
                yield block, [Command(c.text, perform(c.text, folder)) for c in commands(block["body"])]


def perform(command: str, folder: Path) -> str:
    done = subprocess.run(
        ["bash", "-c", command],
        cwd=folder,
        env=environment(folder),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    output = done.stdout.replace(str(folder), SHOWN_FOLDER)
    return output if output.endswith("\n") or not output else output + "\n"


def environment(folder: Path) -> dict[str, str]:
    kept = {name: os.environ[name] for name in ("PYTHONPATH",) if name in os.environ}
    if kept:
        kept["PYTHONPATH"] = os.path.abspath(kept["PYTHONPATH"])
    return {
        **kept,
        "PATH": f"{sysconfig.get_path('scripts')}:/usr/local/bin:/usr/bin:/bin",
        "HOME": str(folder / ".home"),
        "LANG": "C.UTF-8",
        "AKM_BUNDLE_DIR": str(folder / "bundle"),
    }


def settled(text: str) -> str:
    """What stays the same from run to run: lines of steps that run side by side may change places."""
    for pattern, mark in VARYING:
        text = pattern.sub(mark, text)
    return "\n".join(sorted(line.rstrip() for line in text.strip().splitlines()))


def rewrite(page: Path) -> None:
    """Put the real outputs into a page."""
    with tempfile.TemporaryDirectory() as folder:
        text = page.read_text("utf-8")
        for block, done in replay(page, Path(folder).resolve()):
            body = "".join(f"$ {command.text}\n{command.output}" for command in done)
            text = text.replace(block["body"], body, 1)
        page.write_text(text, "utf-8")


if __name__ == "__main__":
    for name in sys.argv[1:]:
        rewrite(Path(name))
