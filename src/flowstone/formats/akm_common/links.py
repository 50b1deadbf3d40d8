"""The rules that join steps: what may read what, and where a route may lead.

Parsers and the source IR decoder note every reading and every route target here while they walk a
document; `check` then judges all of them at once, whatever else was wrong with the document.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from flowstone.diagnostics import Place, Report
from flowstone.expr.model import Reference


class Reading(msgspec.Struct, frozen=True):
    """A reference at `place`; `step` is the index of the step that reads, None for a workflow output."""

    label: str
    reference: Reference
    place: Place
    step: int | None = None
    code: str = "reference"


class Lead(msgspec.Struct, frozen=True):
    """A route of step `step` that leads to the step named `target`."""

    label: str
    target: str
    place: Place
    step: int


class Links:
    """The readings and leads of one document, in the order in which they were found."""

    def __init__(self) -> None:
        self.readings: list[Reading] = []
        self.leads: list[Lead] = []

    def check(self, ids: Sequence[str | None], params: frozenset[str], report: Report) -> None:
        """Report every link that does not hold. An id None is a step whose id could not be read.

        While one is unknown, a link that names no declared step may be meant for it and passes.
        """
        judge = _Judge(ids, params, report)
        for reading in self.readings:
            judge.read(reading)
        for lead in self.leads:
            judge.lead(lead)


class _Judge:
    def __init__(self, ids: Sequence[str | None], params: frozenset[str], report: Report) -> None:
        self._first: dict[str, int] = {}
        for index, step_id in enumerate(ids):
            if step_id is not None:
                self._first.setdefault(step_id, index)
        self._complete = None not in ids
        self._params = params
        self._report = report

    def read(self, reading: Reading) -> None:
        reference, place = reading.reference, reading.place
        if reference.root == "params":
            self._param(reading)
            return
        at = self._first.get(reference.name)
        if at is None:
            if self._complete:
                message = f'{reading.label} reads {reference.text}, but no step "{reference.name}" is declared.'
                self._report.error(f"{reading.code}-unknown-step", message, place, self._known())
        elif reading.step is not None and at >= reading.step:
            self._report.error(f"{reading.code}-later-step", _too_late(reading, at), place)

    def _param(self, reading: Reading) -> None:
        name = reading.reference.name
        if name not in self._params:
            message = f'{reading.label} reads params.{name}, which "params" does not declare.'
            hint = f"declare it: params: {{ {name}: {{ type: … }} }}"
            self._report.warn("undeclared-param", message, reading.place, hint)

    def lead(self, lead: Lead) -> None:
        at = self._first.get(lead.target)
        if at is None:
            if self._complete:
                message = f'{lead.label} names the step "{lead.target}", which is not declared.'
                self._report.error("route-unknown-step", message, lead.place, self._known())
        elif at == lead.step:
            message = f"{lead.label} leads the step to itself; a route selects a later step."
            self._report.error("route-self", message, lead.place, 'to repeat a step, give it a "gate"')
        elif at < lead.step:
            message = f'{lead.label} leads back to step "{lead.target}"; routes lead forward only.'
            self._report.error("route-backward", message, lead.place, 'to repeat a step, give it a "gate"')

    def _known(self) -> str:
        names = list(self._first)
        shown = ", ".join(names[:12]) + (", …" if len(names) > 12 else "")
        return f"declared steps: {shown or '(none)'}"


def _too_late(reading: Reading, at: int) -> str:
    reference = reading.reference
    if at == reading.step:
        return f'{reading.label} reads {reference.text}, the output of step "{reference.name}" itself.'
    return (
        f'{reading.label} reads {reference.text}, but step "{reference.name}" comes later; '
        "a step reads earlier steps only."
    )
