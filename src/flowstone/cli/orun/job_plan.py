"""`orun plan JOB.yaml`: check a job with its workflows, and pin all of it in a plan file."""

from __future__ import annotations

import os

import click

from flowstone.cli.orun.diagnosed import diagnosed
from flowstone.cli.render.formats import write_file
from flowstone.cli.render.terminal import neutral, say
from flowstone.errors import PlanVersionError

PLAN_FILE = "plan.json"
LANGUAGE = "orun-job"


@click.command("plan", epilog="Example: orun plan deploy.yaml && orun run")
@click.argument("job")
@click.option("-o", "--output", "out", default=PLAN_FILE, metavar="FILE", help="The plan file; plan.json by default.")
@click.option("--check", is_flag=True, help="Write nothing; end with 1 where the plan file is not up to date.")
@click.option("--frozen", is_flag=True, help="Refuse a remote workflow that only the plan would pin.")
def command(job: str, out: str, check: bool, frozen: bool) -> None:
    """Check the job file JOB and the workflows that it runs, and write a plan that pins them by digest.

    The same files give the same bytes, so a plan file can be reviewed and committed.
    """
    from flowstone.api import Flowstone
    from flowstone.api.jobs import plan_job

    with Flowstone(language=LANGUAGE) as flow, diagnosed(flow):
        flow.wiring.frozen = frozen
        flow.wiring.on_fetch = lambda text: say(f"{neutral(text)}\n")
        text = plan_job(flow, job, os.path.dirname(out))
    old = _content(out)
    if old != text and check:
        raise PlanVersionError(f"{out} is not what {job} plans to now; run: orun plan {job}")
    if old != text:
        write_file(out, text)
    say(f"{'written' if old != text else 'up to date'}: {out}\n")


def _content(path: str) -> str | None:
    """What the plan file holds now; None where there is none that can be read."""
    try:
        with open(path, encoding="utf-8", newline="") as file:
            return file.read()
    except (OSError, ValueError):
        return None
