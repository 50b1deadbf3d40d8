"""The typed document of an orun workflow: the source's fields with their places, nothing judged yet.

Texts stay scalar nodes of the source tree, since a check needs their spelling and their places.
"""

from __future__ import annotations

import msgspec

from flowstone.diagnostics import Place
from flowstone.source.tree import Entry, Node, Scalar


class Input(msgspec.Struct, frozen=True):
    name: str
    place: Place
    type: Scalar | None = None
    required: bool = False
    default: Node | None = None
    values: tuple[Node, ...] | None = None
    pattern: Scalar | None = None
    secret: bool = False
    description: str | None = None


class Connection(msgspec.Struct, frozen=True):
    name: str
    place: Place
    type: Scalar | None = None


class Named(msgspec.Struct, frozen=True):
    """A name with its text: an output with its expression, or a variable with its value."""

    name: str
    place: Place
    text: Scalar


class Retry(msgspec.Struct, frozen=True):
    place: Place
    max_retries: int | None = None
    base_delay: Scalar | None = None
    kind: Scalar | None = None


class Poll(msgspec.Struct, frozen=True):
    place: Place
    interval: Scalar | None = None
    timeout: Scalar | None = None
    until: Scalar | None = None


class Step(msgspec.Struct, frozen=True):
    """`arguments` are the entries of `with`; `given` names the keys that the step has, with places.

    `runs` tells that `run` is there and is no empty list, whatever else may be wrong with it.
    """

    name: str
    place: Place
    label: str
    needs: tuple[Scalar, ...] = ()
    when: Scalar | None = None
    runs: bool = False
    run: tuple[Scalar, ...] = ()
    action: Scalar | None = None
    workflow: Scalar | None = None
    arguments: tuple[Entry, ...] = ()
    env: tuple[Named, ...] = ()
    env_inherit: tuple[Scalar, ...] = ()
    cwd: Scalar | None = None
    connection: Scalar | None = None
    timeout: Scalar | None = None
    retry: Retry | None = None
    poll: Poll | None = None
    continue_on_error: bool = False
    outputs: tuple[Named, ...] = ()
    given: tuple[tuple[str, Place], ...] = ()

    @property
    def verbs(self) -> tuple[str, ...]:
        found = (("run", self.runs), ("action", self.action), ("workflow", self.workflow))
        return tuple(verb for verb, there in found if there)

    def place_of(self, key: str) -> Place:
        return dict(self.given).get(key, self.place)


class Document(msgspec.Struct, frozen=True):
    name: str
    place: Place
    steps: tuple[Step, ...]
    inputs: tuple[Input, ...] = ()
    connections: tuple[Connection, ...] = ()
    outputs: tuple[Named, ...] = ()
    max_parallel: int | None = None
    max_parallel_place: Place = Place()
    steps_place: Place = Place()

    def step(self, name: str) -> Step | None:
        return next((step for step in self.steps if step.name == name), None)
