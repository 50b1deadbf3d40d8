"""What the inside asks of a language about starting a run: ids, params, and the words of its files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Any, Protocol

import msgspec

from flowstone.plan.model import Plan
from flowstone.ports.projection import Projection
from flowstone.run.outcome import Reason


class Via(StrEnum):
    """How texts were given, so that a complaint spells them as they were typed."""

    FLAG = "flag"
    """`--name value`"""
    SET = "set"
    """`--set name=value`"""


class Given(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a person gave for a start: texts of flags (a bare flag has None), or ready values.

    `via` tells how the texts were spelt; `connections` holds the fields granted, by connection name.
    """

    texts: tuple[tuple[str, str | None], ...] = ()
    values: Mapping[str, Any] = {}
    connections: Mapping[str, Mapping[str, str]] = {}
    via: Via = Via.FLAG


class Resolved(msgspec.Struct, frozen=True):
    """Params ready for a run: `stored` is what may be kept, `secrets` what must be scrubbed."""

    params: dict[str, Any]
    stored: dict[str, Any]
    secrets: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()


class StoppedChild(msgspec.Struct, frozen=True):
    """A nested run that did not come to a good end, for those who read of it in its parent.

    `step` is where it stopped and `error` why; `reason` what its parent's unit fails with. `held` are
    the held runs below it that it waits for itself, the deepest first.
    """

    ref: str
    reason: Reason
    parent: str
    run: str | None = None
    step: str | None = None
    error: str | None = None
    held: tuple[str, ...] = ()


class Dialect(Protocol):
    """One language's rules for starting and showing runs. `name` is `Plan.dialect`."""

    name: str

    @property
    def projection(self) -> Projection | None:
        """The documented files of a run; None where the language documents none."""

    def run_id(self, plan: Plan, fresh: str, now_ns: int) -> str:
        """The id of a new run, from a fresh unique id and the time in nanoseconds."""

    def resolve(self, plan: Plan, given: Given) -> Resolved:
        """Coerce and check what was given for a new run; InputError tells every misfit."""

    def resume(self, plan: Plan, given: Given, stored: Mapping[str, Any]) -> Resolved:
        """The params of a run that is taken up again; InputError where they would change."""

    def connections(self, plan: Plan, given: Given) -> dict[str, Any]:
        """The connection values for expressions; InputError where a needed grant is missing."""

    def bare_exports(self, run_id: str) -> dict[str, Any]:
        """What a nested run gives its parent that succeeded and declares no outputs."""

    def stopped(self, child: StoppedChild) -> str:
        """The account of a nested run that did not succeed, with what a person can do about it."""

    def word(self, status: str) -> str:
        """The language's own word for a core status."""

    def code(self, codes: Sequence[str]) -> str:
        """The error code for a source whose diagnostics have these codes."""
