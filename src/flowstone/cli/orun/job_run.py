"""`orun run [PLAN]`: run a planned job, once all that its plan pins is shown to be unchanged."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from flowstone.cli.errors import Exit
from flowstone.cli.orun.job_plan import LANGUAGE, PLAN_FILE
from flowstone.cli.orun.run import drive, tell_end
from flowstone.cli.render.terminal import neutral, say
from flowstone.cli.runs import given_of
from flowstone.errors import InputError

if TYPE_CHECKING:
    from flowstone.api import Flowstone


@click.command("run", epilog="Example: orun plan deploy.yaml && orun run")
@click.argument("plan", default=PLAN_FILE)
@click.option("--connection", "connections", multiple=True, metavar="NAME.FIELD=VALUE", help="Grant a connection.")
@click.option("--resume", metavar="RUN", help="Go on with a run of a job, from the plan that it has.")
@click.option("--max-parallel", type=click.IntRange(min=1), help="Steps of a workflow at a time, if it does not say.")
@click.option("--frozen", is_flag=True, help="Refuse a remote workflow that only the plan pins.")
def command(
    plan: str, connections: tuple[str, ...], resume: str | None, max_parallel: int | None, frozen: bool
) -> None:
    """Run the job that PLAN (plan.json by default) holds. Ends with 0 only if the job succeeded.

    Nothing starts unless every file that the plan pins has the digest that it had when it was planned.
    A step with an approval waits until somebody decides: orun approve RUN STEP, or orun reject RUN STEP.
    """
    from flowstone.api import Flowstone
    from flowstone.api.jobs import start_planned

    given = given_of((), connections)
    with Flowstone(language=LANGUAGE) as flow:
        flow.wiring.frozen = frozen
        flow.wiring.on_fetch = lambda text: say(f"{neutral(text)}\n")
        run_id = start_planned(flow, plan, given).run_id if resume is None else _taken_up(flow, resume)
        report = drive(flow, run_id, given, max_parallel, reopen=resume is not None)
    raise Exit(tell_end(report.state.plan.name, report, "job"))


def _taken_up(flow: Flowstone, run_id: str) -> str:
    if "/" in run_id or "\\" in run_id or run_id in ("", ".", ".."):
        raise InputError(f'resume "{run_id}": invalid run id')
    flow.check_source(run_id)
    return run_id
