"""Ways to compile a few lines of an akm workflow and to read what comes of it."""

from __future__ import annotations

from flowstone.diagnostics import Severity
from flowstone.formats.akm_common.compile import compile_github, compile_markdown
from flowstone.formats.registry import Compiled
from flowstone.plan.model import Plan
from flowstone.source.file import text_of


def markdown(front: str, body: str = "## a\n\nDo a.\n") -> Compiled:
    text = f"---\n{front.strip(chr(10))}\n---\n\n{body}"
    return compile_markdown("w.md", text_of(text.encode(), "w.md"), None)


def github(text: str) -> Compiled:
    return compile_github("w.yml", text_of(text.encode(), "w.yml"), None)


def job(steps: str, head: str = "name: W\non: { workflow_dispatch: }") -> Compiled:
    """A workflow with one job whose steps are the lines of `steps`."""
    lines = "".join(f"      {line}\n" for line in steps.strip("\n").split("\n"))
    return github(f"{head}\njobs:\n  j:\n    runs-on: [self-hosted]\n    steps:\n{lines}")


def plan_of(compiled: Compiled) -> Plan:
    assert compiled.diagnostics == ()
    assert compiled.plan is not None
    return compiled.plan


def errors(compiled: Compiled) -> list[tuple[str, int]]:
    return [(d.code, d.place.line) for d in compiled.diagnostics if d.severity is Severity.ERROR]


def codes(compiled: Compiled) -> list[str]:
    return [code for code, _ in errors(compiled)]
