"""A machine on which only one real agent program is installed, and flowstone's `akm` on it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.integration.agents.programs import Program
from tests.integration.agents.server import AgentModelServer

SOURCE = Path(__file__).parents[3] / "src"
AKM = (sys.executable, "-c", "from flowstone.cli.akm.main import main; main()")
KEY = "key-0123456789"


class Machine:
    """A home, a project (a git repository) and a PATH with the program in it; `server` is its model."""

    def __init__(self, folder: Path, program: Program, server: AgentModelServer) -> None:
        self.program = program
        self.server = server
        self.folder = folder
        self.project = folder / "project"
        for path, text in program.home(server.url).items():
            self._write(f"home/{path}", text)
        for name in ("project", "bin", "tmp", "bundle/workflows"):
            (folder / name).mkdir(parents=True, exist_ok=True)
        (folder / "bin" / program.platform).symlink_to(program.path)
        subprocess.run(["git", "init", "-q", str(self.project)], check=True, env=self.environment)
        self.engines()

    @property
    def environment(self) -> dict[str, str]:
        folders = ("config", "data", "state", "cache", "bundle")
        return {
            **{f"AKM_{name.upper()}_DIR": str(self.folder / name) for name in folders},
            "PATH": f"{self.folder / 'bin'}:{os.environ['PATH']}",
            "HOME": str(self.folder / "home"),
            "TMPDIR": str(self.folder / "tmp"),
            "LANG": "C.UTF-8",
            "PYTHONPATH": str(SOURCE),
            self.program.key: KEY,
        }

    def engines(self, judge: str | None = None, **engine: Any) -> None:
        """Configure the engine `agent` with these keys beside the usual ones."""
        usual = {"kind": "agent", "platform": self.program.platform, "model": self.program.model}
        config = {
            "configVersion": "0.9.0",
            "engines": {"agent": {**usual, **engine}},
            "defaults": {"engine": "agent"},
            "workflow": {} if judge is None else {"judgeEngine": judge},
        }
        self._write("config/config.json", json.dumps(config))

    def run(self, workflow: str, code: int = 0) -> dict[str, Any]:
        """Run a workflow to its end; the run as `akm workflow status --units` tells it."""
        self._write("bundle/workflows/w.md", workflow)
        done = self.akm("workflow", "run", "workflows/w")
        assert done.returncode == code, done.stdout + done.stderr
        id = json.loads(done.stdout)["run"]["id"]
        return json.loads(self.akm("workflow", "status", id, "--units").stdout)

    def begin(self, workflow: str) -> subprocess.Popen[bytes]:
        """Start a workflow and leave it running."""
        self._write("bundle/workflows/w.md", workflow)
        command = [*AKM, "workflow", "run", "workflows/w"]
        quiet = subprocess.DEVNULL
        return subprocess.Popen(
            command, cwd=self.project, env=self.environment, stdin=quiet, stdout=quiet, stderr=quiet
        )

    def akm(self, *argv: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*AKM, *argv],
            cwd=self.project,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=250,
            check=False,
        )

    def _write(self, path: str, text: str) -> None:
        target = self.folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text)


@pytest.fixture
def machine(tmp_path: Path) -> Callable[[Program, AgentModelServer], Machine]:
    return lambda program, server: Machine(tmp_path, program, server)
