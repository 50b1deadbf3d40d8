"""`flowstone why RUN UNIT`: why a unit ran, was reused, failed, was skipped or never started."""

from __future__ import annotations

import click

from flowstone.cli.render.terminal import neutral, say, say_document
from flowstone.errors import UsageError


@click.command("why", epilog="Examples: flowstone why 019a3f21 test:solo · flowstone why --last 'check[3]'")
@click.argument("words", nargs=-1, metavar="[RUN] UNIT")
@click.option("--last", is_flag=True, help="The newest run that was started in this folder.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
def command(words: tuple[str, ...], last: bool, as_json: bool) -> None:
    """Tell why UNIT ran, was reused, failed, was skipped or has not started.

    UNIT is a step, a unit's id (or its start), or STEP[INDEX] for one unit of a map.
    """
    from flowstone.api import Flowstone
    from flowstone.values import pretty_json
    from flowstone.views.why import why, why_lines

    if len(words) not in (1, 2) or (last and len(words) == 2):
        raise UsageError("Name a run and a unit, or --last and a unit.", hint="flowstone why --last STEP")
    with Flowstone() as flow:
        run = flow.last() if len(words) == 1 else words[0]
        view = flow.status(run)
        events = (event for _, _, event in flow.events(view.row.record.id))
        answer = why(view.state, events, words[-1])
    if as_json:
        facts = {"step": answer.step, "unit": answer.unit, "verdict": answer.verdict, "facts": list(answer.facts)}
        say_document(pretty_json(facts) + "\n")
    else:
        say("".join(f"{neutral(line)}\n" for line in why_lines(answer)))
