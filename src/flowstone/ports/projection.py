"""What a store with documented files asks of a language's dialect: the files, in its own words."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Protocol

from flowstone.run.events import Event

if TYPE_CHECKING:
    from flowstone.run.state import State


class Projection(Protocol):
    """Turns a run's state into the files that its language documents.

    The files are views: they are written after the commit and never read back, so one that is
    stale or lost harms nobody, and the next publication writes it again.
    """

    def files(self, state: State, events: Sequence[Event]) -> Iterable[tuple[str, bytes]]:
        """The files that `events` changed, as (path in the run folder, whole content).

        `state` has the events folded in. Without events (a resume): all files of the run. Paths are
        relative, with `/` between their parts, and stay in the folder.
        """
