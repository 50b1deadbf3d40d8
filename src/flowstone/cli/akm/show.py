"""`akm show`: a stored asset; a workflow with its parameters, its steps and its active run."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import click

from flowstone.cli.common import output_options
from flowstone.cli.render.formats import Output, emit
from flowstone.diagnostics import errors_of
from flowstone.errors import CompileError

if TYPE_CHECKING:
    from flowstone.api import Flowstone, Workflow
    from flowstone.views.show import Shown


@click.command("show", epilog="Example: akm show workflows/release --format md")
@click.argument("target")
@output_options()
def command(target: str, output: Output) -> None:
    """Show the asset TARGET. Of a workflow: what it needs, what each of its steps does, and its active run."""
    from flowstone.api import Flowstone
    from flowstone.api.prompts import family_of, show
    from flowstone.api.showing import is_plain, show_plain
    from flowstone.cli.akm.runs import reading_store, word_of
    from flowstone.views.show import show_view

    with Flowstone() as flow:
        if is_plain(target):
            emit(show_plain(flow, target), output)
            return
        family = family_of(target)
        if family is not None:
            emit(show(flow, target, family), output)
            return
        workflow = flow.compile(target)
        plan = workflow.compiled.plan
        if plan is None:
            raise CompileError(workflow.path, errors_of(workflow.diagnostics))
        if workflow.compiled.format == "akm-task":
            emit(_task_view(flow, target), output)
            return
        found = reading_store(flow).find(scope=flow.wiring.scope.key, ref=workflow.ref, active_only=True, limit=1)
        emit(show_view(plan, _shown(flow, workflow), next(found, None), word_of(flow)), output)


def _task_view(flow: Flowstone, target: str) -> dict[str, Any]:
    """A task: what it takes, what it runs, and when."""
    from flowstone.api.task_runs import Start
    from flowstone.api.task_views import explain
    from flowstone.api.tasks import find_task

    found = find_task(flow, target)
    view = {"type": "task", "action": f"akm task run {found.ref}", **explain(flow, found, Start())}
    view.pop("inputProblem", None)
    return {**view, "shape": "show"}


def _shown(flow: Flowstone, workflow: Workflow) -> Shown:
    from flowstone.views.show import Shown

    bundle, _, rest = workflow.ref.rpartition("//")
    path = os.path.abspath(os.path.join(flow.wiring.cwd, workflow.source.path))
    return Shown(
        ref=workflow.ref,
        name=rest.removeprefix("workflows/") if bundle else os.path.basename(workflow.path),
        origin=bundle or None,
        path=path,
        editable=os.access(path, os.W_OK),
    )
