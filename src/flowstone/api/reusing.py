"""Takes over in a new run what an earlier run of the same workflow did: first as a list, then as its first events."""

from __future__ import annotations

from typing import TYPE_CHECKING

from flowstone.errors import UsageError
from flowstone.run.seeding import Seed, seeding_events, seeds_of
from flowstone.run.state import State

if TYPE_CHECKING:
    from flowstone.api.session import Session
    from flowstone.plan.model import Plan
    from flowstone.ports.dialect import Given, Resolved
    from flowstone.run.events import Event


def reuse_list(session: Session, target: str, run_id: str, given: Given) -> tuple[Seed, ...]:
    """What a new run of `target` would do with each step if it took over run `run_id`; writes nothing."""
    from flowstone.formats.registry import dialect_of

    workflow = session.compiling.sound(target)
    resolved = dialect_of(workflow.compiled.plan.dialect).resolve(workflow.compiled.plan, given)
    return Reuse(session, run_id, session.compiling.freeze(workflow).plan, resolved).seeds


class Reuse:
    """An earlier run as the new run of `plan` sees it. UsageError for a run of another language."""

    def __init__(self, session: Session, run_id: str, plan: Plan, resolved: Resolved) -> None:
        from flowstone.drivers.journal import replay
        from flowstone.plan.codec import decode_plan

        store, full = session.wiring.store_of(run_id, readonly=True)
        row = store.load(full)
        if row.record.dialect != plan.dialect:
            raise UsageError(
                f"Run {full} is one of another language, so nothing of it can be taken over.",
                hint="Name a run of the same workflow: flowstone list",
            )
        self._old: State = replay(store, full, decode_plan(row.record.plan, check=False))
        self._plan = plan
        self.seeds = seeds_of(self._old, plan, changed=_changed(row.record.params, resolved))

    def events(self, now: int) -> list[Event]:
        """The first events of the new run, at the time `now` (milliseconds since the epoch)."""
        return seeding_events(self._old, self._plan, self.seeds, now)


def _changed(before: object, resolved: Resolved) -> str | None:
    """Which params are others now; of a secret one no value was kept, so it may be."""
    if resolved.secrets:
        return "a secret parameter may be another one"
    old = before if isinstance(before, dict) else {}
    now = resolved.stored if isinstance(resolved.stored, dict) else {}
    names = sorted(name for name in {*old, *now} if old.get(name) != now.get(name))
    return f"changed parameter: {', '.join(names)}" if names else None
