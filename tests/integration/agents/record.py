"""Writes the transcripts of tests/contract/harnesses anew: what the installed programs print when they are driven.

`python -m tests.integration.agents.record` records all of them, `… record NAME BINARY` one of them with a program
that lies elsewhere (`codex-earlier` is codex 0.40.0). What differs from run to run is replaced.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from pathlib import Path

from flowstone.dispatchers.agent.harness import Task
from flowstone.dispatchers.agent.registry import harness_of
from tests.integration.agents.conftest import Machine
from tests.integration.agents.programs import PROGRAMS, Program
from tests.integration.agents.server import AgentModelServer, Answer, Call, Script, scripted

TRANSCRIPTS = Path(__file__).parents[2] / "contract" / "harnesses" / "transcripts"
VERBOSE = ("--output-format", "json", "--verbose")
RECORDED = {
    "claude.out": ("claude", ()),
    "claude-verbose.out": ("claude", VERBOSE),
    "claude-refused.out": ("claude", ()),
    "codex.out": ("codex", ()),
    "codex-refused.out": ("codex", ()),
    "gemini.out": ("gemini", ()),
    "opencode.out": ("opencode", ("--format", "json")),
    "opencode-refused.out": ("opencode", ("--format", "json")),
    "codex-earlier.out": ("codex", ()),
}
"""Each transcript, its program, and the engine's args; `refused`: by the server, with 401."""
ELSEWHERE = ("codex-earlier.out",)
VARYING = (
    (re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}"), "00000000-0000-4000-8000-{:012d}"),
    (re.compile(r"(?<=ses_|msg_|prt_)[0-9A-Za-z]{20,}"), "{:026d}"),
    (re.compile(r"127\.0\.0\.1:\d+"), "127.0.0.1:8080"),
    (re.compile(r"\b1[789]\d{11}\b"), "1764500000000"),
    (re.compile(r"\b20\d\d-\d\d-\d\dT[0-9:.]+Z"), "2026-01-01T00:00:00.000Z"),
    (re.compile(r"\w{3}, \d\d \w{3} 20\d\d [0-9:]{8} GMT"), "Thu, 01 Jan 2026 00:00:00 GMT"),
    (re.compile(r'(?<=_ms":)\d+|(?<=Ms": )\d+|(?<="nanos":)\d+'), "100"),
    (re.compile(r"/cc-socks/\d+"), "/cc-socks/1"),
)


def main(argv: list[str]) -> None:
    chosen = {f"{argv[0]}.out": Path(argv[1]).resolve()} if argv else dict.fromkeys(RECORDED)
    for name, binary in chosen.items():
        if binary is None and name in ELSEWHERE:
            continue
        platform, args = RECORDED[name]
        (TRANSCRIPTS / name).write_text(recorded(PROGRAMS[platform], args, "refused" in name, binary))


def recorded(program: Program, args: tuple[str, ...], refused: bool, binary: Path | None = None) -> str:
    harness = harness_of(program.platform)
    assert harness is not None
    task = Task("Do a.", model=program.model, args=(*args, *program.allowing), structured=args != VERBOSE)
    with tempfile.TemporaryDirectory() as folder, AgentModelServer(_script(program, refused)) as server:
        machine = Machine(Path(folder), program, server)
        done = subprocess.run(
            [str(binary or program.path), *harness.arguments(task)],
            cwd=machine.project,
            env=machine.environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert done.stdout, done.stderr
        return redacted(done.stdout.replace(folder, "/home/you"))


def redacted(printed: str) -> str:
    """The transcript with ids numbered in their order, and with fixed times, ports and durations."""
    for pattern, shown in VARYING:
        numbers: dict[str, int] = {}

        def fixed(found: re.Match[str], numbers: dict[str, int] = numbers, shown: str = shown) -> str:
            return shown.format(numbers.setdefault(found[0], len(numbers) + 1))

        printed = pattern.sub(fixed, printed)
    return printed


def _script(program: Program, refused: bool) -> Script:
    """The model looks around first; that the server refuses the key is said to every request."""
    if refused:
        return scripted(Answer("that key is no good", status=401))
    name, arguments = program.shell("echo hi")
    return scripted(Answer("I have looked.", calls=(Call(name, arguments),)), Answer('{"v":"done"}'))


if __name__ == "__main__":
    main(sys.argv[1:])
