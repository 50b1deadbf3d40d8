"""`akm workflow plan`: compile and freeze a workflow and show the result; nothing is written."""

from __future__ import annotations

import os

import click

from flowstone.cli.common import output_options
from flowstone.cli.render.formats import Output, emit


@click.command("plan", epilog="Example: akm workflow plan workflows/release --format yaml")
@click.argument("target")
@output_options()
def command(target: str, output: Output) -> None:
    """Show what a run of TARGET (a ref or a file) would do; writes nothing."""
    from flowstone.api import Flowstone
    from flowstone.views.plan import PlanOrigin, plan_view

    with Flowstone() as flow:
        workflow = flow.compile(target)
        frozen = flow.plan(target)
        here = flow.wiring.cwd
        found = (f"{workflow.path}:{d.place.line}: {d.message}" for d in workflow.diagnostics)
        view = plan_view(
            frozen.plan,
            frozen.hash,
            PlanOrigin(workflow.ref, workflow.compiled.format, workflow.path),
            lambda path: os.path.relpath(os.path.join(here, path), here),
            notices=frozen.notices,
            warnings=[*found, *frozen.warnings],
        )
        emit(view, output)
