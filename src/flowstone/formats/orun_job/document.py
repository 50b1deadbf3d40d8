"""The typed document of a job: the source's fields with their places, nothing judged yet."""

from __future__ import annotations

import msgspec

from flowstone.diagnostics import Place
from flowstone.formats.orun.document import Named, Retry
from flowstone.source.tree import Entry, Scalar


class Approval(msgspec.Struct, frozen=True):
    place: Place
    prompt: Scalar | None = None
    timeout: Scalar | None = None
    on_timeout: Scalar | None = None


class Grant(msgspec.Struct, frozen=True):
    """What a step grants to its workflow: a connection by name, with the references of its fields."""

    name: str
    place: Place
    fields: tuple[Named, ...] = ()


class Step(msgspec.Struct, frozen=True):
    """`arguments` are the entries of `with`; `given` names the keys that the step has, with places."""

    name: str
    place: Place
    label: str
    run: Scalar | None = None
    workflow: Scalar | None = None
    arguments: tuple[Entry, ...] = ()
    grants: tuple[Grant, ...] = ()
    resume: bool = False
    env: tuple[Named, ...] = ()
    env_inherit: tuple[Scalar, ...] = ()
    cwd: Scalar | None = None
    outputs: tuple[Named, ...] = ()
    timeout: Scalar | None = None
    retry: Retry | None = None
    on_failure: Scalar | None = None
    approval: Approval | None = None
    given: tuple[tuple[str, Place], ...] = ()

    @property
    def verbs(self) -> tuple[str, ...]:
        found = (("run", self.run), ("workflow", self.workflow))
        return tuple(verb for verb, there in found if there is not None)

    @property
    def continues(self) -> bool:
        """Whether the job goes on when the step fails."""
        return self.on_failure is not None and self.on_failure.text == "continue"

    def place_of(self, key: str) -> Place:
        return dict(self.given).get(key, self.place)


class Document(msgspec.Struct, frozen=True):
    name: str
    place: Place
    steps: tuple[Step, ...]
    steps_place: Place = Place()
