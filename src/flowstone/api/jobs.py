"""Jobs: a job file becomes the text of a plan file, and a plan file whose pins all hold becomes a run."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from flowstone.api.model import Started, Workflow
from flowstone.api.pinning import check_pins
from flowstone.api.starting import publish
from flowstone.errors import PlanVersionError, SourceError
from flowstone.ports.dialect import Given

if TYPE_CHECKING:
    from flowstone.api.facade import Flowstone
    from flowstone.formats.orun_job.planned import Planned

STALE = "nothing was started: restore what changed, or plan again"


def plan_job(flow: Flowstone, job: str, folder: str) -> str:
    """The text of the plan file of a job, for a plan file in `folder`; CompileError with every mistake.

    The same files give the same bytes, whoever plans, whenever and wherever.
    """
    from flowstone.formats.orun_job.planned import encode

    workflow = flow.sound(job)
    frozen = flow.plan(job)
    place = flow.wiring.place(workflow.source.path)
    return encode(frozen.plan, os.path.relpath(place, os.path.join(flow.wiring.cwd, folder)))


def start_planned(flow: Flowstone, path: str, given: Given) -> Started:
    """Publish a run of a plan file, once it is shown that nothing that it pins has changed.

    PlanVersionError for a file that is no plan, or was altered; DigestMismatch names the files that
    are no longer what they were when the plan was made. Nothing has been started then.
    """
    from flowstone.freeze.frozen import Frozen

    wiring = flow.wiring
    planned = read_plan(flow, path)
    place = os.path.normpath(os.path.join(wiring.cwd, os.path.dirname(path), planned.job))
    check_pins(wiring, planned.plan, os.path.dirname(place), path, STALE)
    source = wiring.source(place)
    workflow = Workflow(path, source, None, lambda: wiring.catalog.ref_of(place) or os.path.realpath(place))
    return publish(flow.session, workflow, Frozen(planned.plan, planned.text, planned.digest), given)


def read_plan(flow: Flowstone, path: str) -> Planned:
    """A plan file that is whole; PlanVersionError says what is wrong with it."""
    from flowstone.formats.orun_job.planned import decode
    from flowstone.plan.bounds import PLAN_BYTES
    from flowstone.source.file import read_source

    # The plan is in it with indents and line ends.
    try:
        return decode(read_source(flow.wiring.place(path), PLAN_BYTES * 8).text)
    except SourceError as error:
        raise SourceError(f"{error.message}; make it with: orun plan JOB.yaml") from None
    except PlanVersionError as error:
        text = f"{path}: {error.message}; make it with: orun plan JOB.yaml"
        raise PlanVersionError(text, code=error.code) from None
