"""The typed Python API: compile, lint, plan, run, status, resume. The commands are built on it.

from flowstone.api import Flowstone

flow = Flowstone()
report = flow.run("release.md", values={"version": "1.2.0"})
print(report.state.status)
"""

from flowstone.api.facade import Flowstone
from flowstone.api.model import RunView, Started, Workflow
from flowstone.api.texts import (
    diagnostics_json,
    diagnostics_sarif,
    diagnostics_text,
    is_path,
    timeout_of,
    workflow_template,
)
from flowstone.ports.dialect import Given
from flowstone.run.events import RunStatus

__all__ = [
    "Flowstone",
    "Given",
    "RunStatus",
    "RunView",
    "Started",
    "Workflow",
    "diagnostics_json",
    "diagnostics_sarif",
    "diagnostics_text",
    "is_path",
    "timeout_of",
    "workflow_template",
]
