"""Small jobs in a folder, compiled as a user's file would be."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from flowstone.formats.registry import Compiled, compile_source
from flowstone.plan.model import Plan
from flowstone.source.file import read_source

HEAD = "apiVersion: orun.dev/v1\nkind: Job\nmetadata: { name: deploy }\nsteps:\n"
WORKFLOW = """\
apiVersion: orun.dev/v1
kind: Workflow
metadata: { name: release }
inputs:
  image: { type: string, required: true }
  count: { type: integer }
connections: { gh: { type: http.bearer } }
outputs: { tag: "steps.tag.outputs.tag" }
steps:
  - name: tag
    run: [echo, "{{ inputs.image }}", "{{ connections.gh.bearerToken }}"]
    outputs: { tag: "stdout.trim()" }
"""


def compiled(folder: Path, steps: str, head: str = HEAD, workflow: str = WORKFLOW) -> Compiled:
    """The job with these steps; `release.yaml` beside it is a workflow."""
    (folder / "release.yaml").write_text(workflow)
    path = folder / "job.yaml"
    path.write_text(head + steps)
    return compile_source("job.yaml", str(path), read_source(str(path), 1 << 20))


def said(folder: Path, steps: str, **given: Any) -> list[str]:
    """What is wrong with a job: `line:column code message`."""
    found = compiled(folder, steps, **given).diagnostics
    return [f"{d.place.line}:{d.place.column} {d.code} {d.message}" for d in found]


def planned(folder: Path, steps: str, **given: Any) -> Plan:
    """The plan of a sound job."""
    made = compiled(folder, steps, **given)
    assert made.diagnostics == ()
    assert made.plan is not None
    return made.plan
