"""A bench for agent dispatchers: a scripted program that notes how it was called and prints a transcript."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from flowstone.dispatchers.agent.dispatcher import AgentDispatcher
from flowstone.dispatchers.process.dispatcher import ProcessDispatcher
from flowstone.plan.units import AgentSpec
from flowstone.ports.dispatcher import Dispatch, Workspace
from flowstone.redaction import Redactor
from flowstone.run.outcome import Outcome

TRANSCRIPTS = Path(__file__).parent / "transcripts"
PASSED = ("HOME", "PATH", "LANG")
SCHEMA = {"type": "object", "required": ["v"], "properties": {"v": {"type": "string"}}}
_NOTES = """#!/bin/sh
n=$(ls "{folder}" | grep -c '^call') || true
i=0; for word in "$@"; do i=$((i+1)); printf '%s' "$word" > "{folder}/word-$n-$i"; done
printf '%s' "$#" > "{folder}/call-$n"
env > "{folder}/environment"; pwd > "{folder}/cwd"; cat > "{folder}/stdin"
"""


class Bench:
    """One folder in which a scripted agent works; `env` is the host's environment."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.notes = folder / "notes"
        self.notes.mkdir()
        self.work = folder / "work"
        self.work.mkdir()
        self.env = {"PATH": os.environ["PATH"], "HOME": str(folder), "FOREIGN": "stays-outside"}
        self.lines: list[str] = []
        self.assets: dict[str, dict[str, str]] = {}

    def program(self, script: str) -> str:
        path = self.folder / "agent"
        path.write_text(_NOTES.format(folder=self.notes) + script)
        path.chmod(0o755)
        return str(path)

    def prints(self, transcript: str) -> str:
        return self.program(f"cat {TRANSCRIPTS / transcript}\n")

    def perform(self, platform: str, bin: str | None, **fields: Any) -> Outcome:
        own = {name: fields.pop(name) for name in list(fields) if name in AgentSpec.__struct_fields__}
        fields.setdefault("messages", (("user", "Do a."),))
        fields["has_schema"] = "schema" in fields
        spec = AgentSpec("Do a.", "ag", platform, bin, passed=PASSED, **own)
        dispatch = Dispatch("r", "a", "a:solo", 0, 0, "h", spec, **fields)

        async def main() -> Outcome:
            workspace = Workspace(base=str(self.work), cwd=str(self.work))
            commands = ProcessDispatcher(
                workspace, self.env, Redactor(["run-secret"]), self.assets.__getitem__, self._heard
            )
            agents = AgentDispatcher(commands, self.env)
            try:
                return await agents.perform(dispatch)
            finally:
                await agents.close()
                await commands.close()

        return asyncio.run(main())

    def _heard(self, step: str, unit: str, texts: Sequence[str]) -> None:
        self.lines += texts

    @property
    def calls(self) -> list[list[str]]:
        """The arguments of each call, after the program."""
        count = len(list(self.notes.glob("call-*")))
        sizes = [int((self.notes / f"call-{n}").read_text()) for n in range(count)]
        return [[(self.notes / f"word-{n}-{i + 1}").read_text() for i in range(size)] for n, size in enumerate(sizes)]

    def note(self, name: str) -> str:
        return (self.notes / name).read_text()

    @property
    def environment(self) -> dict[str, str]:
        pairs = (line.partition("=") for line in self.note("environment").splitlines())
        return {name: value for name, _, value in pairs}


def verdict(complete: bool) -> str:
    return json.dumps({"complete": complete, "missing": [], "feedback": "fine"})
